// Reads the groups of a database: once when a writer opens it, and again and again in a process that reads beside the
// writer.
import { damageText } from '../../../kernel/damage-texts.js';
import type { Message } from '../../../kernel/message.js';
import { damageIn } from '../../../kernel/stored-json.js';
import { nextDigest } from '../../digest.js';
import type { JournalHeads } from '../../store.js';
import type { Database, Statement } from '../open-database.js';
import { PACKED, type PackedBody } from '../pack-body.js';
import { decodeGroup, type RecentFlush } from './group-format.js';
import { RecentFlushes, type GroupedFlush, type RecentView } from './recent-flushes.js';

type GroupRow = PackedBody & { readonly group_id: number };

const SELECT = `SELECT group_id, body, ${PACKED} FROM event_groups WHERE group_id > ? ORDER BY group_id`;

export interface LoadedGroups {
  readonly recent: RecentFlushes;
  // Groups whose flushes are all merged.
  readonly empty: readonly number[];
  readonly newest: number;
  // Problems of groups that cannot be read completely. Their rows are kept.
  readonly damaged: readonly Message[];
}

// For the writer: every flush continues the journal of its run, digest included. A group that is damaged, or whose
// flushes continue nothing, is reported and stays in the database.
export function loadGroups(db: Database): LoadedGroups {
  const recent = new RecentFlushes();
  const damaged: Message[] = [];
  const empty: number[] = [];
  let newest = 0;
  const select = db.prepare('SELECT rasp_seq, fcmp_seq, ts, digest FROM runs WHERE run_id = ?');
  for (const { group_id: group, ...body } of db.prepare(SELECT).iterate(0) as Iterable<GroupRow>) {
    newest = group;
    const problems = damaged.length;
    try {
      for (const flush of decodeGroup(body)) {
        const row = select.get(flush.runId) as JournalHeads | undefined;
        const head = recent.flushesOf(flush.runId).at(-1)?.heads ?? row;
        // Merged, or of a run that was deleted.
        if (!head || flush.heads.rasp_seq <= head.rasp_seq) continue;
        if (!continues(flush, head))
          damaged.push(groupDamage(group, damageText('damage.group_order', { run: flush.runId })));
        else recent.add({ ...flush, group });
      }
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      damaged.push(groupDamage(group, damage.damage));
    }
    if (recent.countIn(group) === 0 && damaged.length === problems) empty.push(group);
  }
  return { recent, empty, newest, damaged };
}

function groupDamage(group: number, problem: Message): Message {
  return damageText('damage.group', { group, problem });
}

function continues({ journal: { rasp }, heads }: RecentFlush, head: JournalHeads): boolean {
  return rasp.firstSeq === head.rasp_seq + 1 && nextDigest(head.digest, rasp.bytes) === heads.digest;
}

// For a process that reads beside the writer: the groups that are new since the last call are read first.
export class GroupReader implements RecentView {
  readonly #recent = new RecentFlushes();
  readonly #select: Statement;
  readonly #selectOldest: Statement;
  readonly #selectHead: Statement;
  #read = 0;

  constructor(db: Database) {
    this.#select = db.prepare(SELECT);
    this.#selectOldest = db.prepare('SELECT min(group_id) AS oldest FROM event_groups');
    this.#selectHead = db.prepare('SELECT rasp_seq FROM runs WHERE run_id = ?');
  }

  flushesOf(runId: string): readonly RecentFlush[] {
    this.#refresh();
    if (this.#recent.newestOf(runId)) {
      const row = this.#selectHead.get(runId) as { rasp_seq: number } | undefined;
      this.#recent.drop(runId, row?.rasp_seq ?? Infinity);
    }
    return this.#recent.flushesOf(runId);
  }

  newestOf(runId: string): RecentFlush | undefined {
    this.#refresh();
    return this.#recent.newestOf(runId);
  }

  #refresh(): void {
    const before = this.#read;
    for (const { group_id: group, ...body } of this.#select.all(before) as unknown as GroupRow[]) {
      this.#read = group;
      for (const flush of readable(body)) this.#add({ ...flush, group });
    }
    if (this.#read === before) return;
    const { oldest } = this.#selectOldest.get() as { oldest: number | null };
    this.#recent.dropGroupsBefore(oldest ?? Infinity);
  }

  // A flush that does not continue the earlier ones follows segments: the earlier ones were merged.
  #add(flush: GroupedFlush): void {
    const newest = this.#recent.newestOf(flush.runId);
    if (newest && flush.journal.rasp.firstSeq !== newest.heads.rasp_seq + 1) this.#recent.drop(flush.runId);
    this.#recent.add(flush);
  }
}

// Nothing of a damaged group: the writer reports it when it starts.
function readable(body: PackedBody): RecentFlush[] {
  try {
    return decodeGroup(body);
  } catch (error) {
    if (!damageIn(error)) throw error;
    return [];
  }
}
