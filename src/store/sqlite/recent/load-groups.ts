// Reads the groups of a database: once when a writer opens it, and repeatedly in a process beside the writer.
import { damageText } from '../../../kernel/damage-texts.js';
import type { Message } from '../../../kernel/message.js';
import { damageIn } from '../../../kernel/stored-json.js';
import { nextDigest } from '../../digest.js';
import type { JournalHeads, Lines } from '../../store.js';
import type { Database, Statement } from '../open-database.js';
import { PACKED, type PackedBody } from '../pack-body.js';
import { decodeGroup, type RecentFlush } from './group-format.js';
import { RecentFlushes, type RecentView } from './recent-flushes.js';

type GroupRow = PackedBody & { readonly group_id: number };

const SELECT = `SELECT group_id, body, ${PACKED} FROM event_groups WHERE group_id > ? ORDER BY group_id`;
const SELECT_HEADS = 'SELECT rasp_seq, fcmp_seq, ts, digest FROM runs WHERE run_id = ?';

export interface LoadedGroups {
  readonly recent: RecentFlushes;
  // Groups whose flushes are all merged.
  readonly empty: readonly number[];
  readonly newest: number;
  // Groups that cannot be used completely, with the problems. Their rows are kept.
  readonly damaged: ReadonlyMap<number, Message>;
}

// For the writer: each flush continues the journal of its run, digest included.
export function loadGroups(db: Database): LoadedGroups {
  const recent = new RecentFlushes();
  const damaged = new Map<number, Message>();
  const empty: number[] = [];
  let newest = 0;
  const select = db.prepare(SELECT_HEADS);
  for (const { group_id: group, ...body } of db.prepare(SELECT).iterate(0) as Iterable<GroupRow>) {
    newest = group;
    const report = (problem: Message): void => void damaged.set(group, damageText('damage.group', { group, problem }));
    for (const flush of readGroup(body, report)) {
      const row = select.get(flush.runId) as JournalHeads | undefined;
      const head = recent.newestOf(flush.runId)?.heads ?? row;
      // Merged, or of a run that was deleted.
      if (!head || flush.heads.rasp_seq <= head.rasp_seq) continue;
      if (continues(flush, head)) recent.add({ ...copyOf(flush), group }, body.body.length);
      else report(damageText('damage.group_order', { run: flush.runId }));
    }
    if (recent.countIn(group) === 0 && !damaged.has(group)) empty.push(group);
  }
  return { recent, empty, newest, damaged };
}

function readGroup(body: PackedBody, onDamage: (problem: Message) => void): RecentFlush[] {
  try {
    return decodeGroup(body);
  } catch (error) {
    const damage = damageIn(error);
    if (!damage) throw error;
    onDamage(damage.damage);
    return [];
  }
}

function continues({ journal: { rasp }, heads }: RecentFlush, head: JournalHeads): boolean {
  return rasp.firstSeq === head.rasp_seq + 1 && nextDigest(head.digest, rasp.bytes) === heads.digest;
}

// A part of a decoded group would keep the whole group in memory.
function copyOf({ journal: { rasp, fcmp, ...times }, ...flush }: RecentFlush): RecentFlush {
  return { ...flush, journal: { ...times, rasp: copyLines(rasp), fcmp: fcmp && copyLines(fcmp) } };
}

function copyLines<T extends Lines>(lines: T): T {
  return { ...lines, bytes: Buffer.from(lines.bytes) };
}

// For a process that reads beside the writer.
export class GroupReader implements RecentView {
  readonly #recent = new RecentFlushes();
  readonly #select: Statement;
  readonly #selectOldest: Statement;
  readonly #selectHeads: Statement;
  #lastGroup = 0;

  constructor(db: Database) {
    this.#select = db.prepare(SELECT);
    this.#selectOldest = db.prepare('SELECT min(group_id) AS oldest FROM event_groups');
    this.#selectHeads = db.prepare(SELECT_HEADS);
  }

  refresh(): void {
    const before = this.#lastGroup;
    for (const { group_id: group, ...body } of this.#select.iterate(before) as Iterable<GroupRow>) {
      this.#lastGroup = group;
      // The writer reports damaged groups when it starts.
      for (const flush of readGroup(body, () => {})) this.#add(flush, group, body.body.length);
    }
    if (this.#lastGroup === before) return;
    const { oldest } = this.#selectOldest.get() as { oldest: number | null };
    this.#recent.dropGroupsBefore(oldest ?? Infinity);
  }

  flushesOf(runId: string): readonly RecentFlush[] {
    this.refresh();
    if (this.#recent.newestOf(runId)) this.#recent.drop(runId, this.#headsOf(runId)?.rasp_seq);
    return this.#recent.flushesOf(runId);
  }

  newestOf(runId: string): RecentFlush | undefined {
    return this.#recent.newestOf(runId);
  }

  // Like the writer, uses a flush only if it continues the journal. If it does not continue the flushes that are here,
  // these may have been merged, and the flush continues the row of the run.
  #add(flush: RecentFlush, group: number, groupBytes: number): void {
    const newest = this.#recent.newestOf(flush.runId);
    if (!newest || !continues(flush, newest.heads)) {
      const heads = this.#headsOf(flush.runId);
      if (!heads || !continues(flush, heads)) return;
      this.#recent.drop(flush.runId);
    }
    this.#recent.add({ ...copyOf(flush), group }, groupBytes);
  }

  #headsOf(runId: string): JournalHeads | undefined {
    return this.#selectHeads.get(runId) as JournalHeads | undefined;
  }
}
