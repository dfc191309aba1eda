// Which processes belong together, however they were detached: who carries the mark, who lives in a session that a
// member founded, who was seen as a member before, and whoever descends from one of these. What was once seen is
// remembered, so a process whose parent died stays a member. This process and those that started it are never members.
import { entryOf, ProcessTable, walkDown, type ProcessEntry, type ProcessRow } from './process-table.js';

export interface Look {
  // Alive now.
  readonly members: readonly ProcessEntry[];
  // False while there are processes of which it cannot be told yet.
  readonly certain: boolean;
}

export class ProcessTree {
  readonly #isOurs: (mark: string) => boolean;
  // Nothing older than the root belongs to it, and need not be looked at.
  readonly #since: number;
  // The start time of every member that was seen, by pid.
  readonly #seen = new Map<number, string>();

  constructor(isOurs: (mark: string) => boolean, root: Pick<ProcessRow, 'pid' | 'startTime'> | null) {
    this.#isOurs = isOurs;
    this.#since = root === null ? 0 : Number(root.startTime);
    if (root) this.#seen.set(root.pid, root.startTime);
  }

  look(table = new ProcessTable()): Look {
    const all = table.rows;
    const spared = lineOf(process.pid, all);
    const rows = [...all.values()].filter((row) => !spared.has(row.pid) && !(Number(row.startTime) < this.#since));
    const readings = new Map(rows.map((row) => [row, this.#judge(row, table)]));
    const roots = rows.filter((row) => readings.get(row) === 'member');
    const members = [
      ...roots,
      ...walkDown(
        rows,
        roots.map(({ pid }) => pid),
      ),
    ];
    for (const { pid, startTime } of members) this.#seen.set(pid, startTime);
    return { members: members.map(entryOf), certain: ![...readings.values()].includes('unclear') };
  }

  #judge(row: ProcessRow, table: ProcessTable): 'member' | 'stranger' | 'unclear' {
    if (this.#seen.get(row.pid) === row.startTime || this.#ownsSession(row.session, table.rows)) return 'member';
    const reading = table.markOf(row.pid);
    if (reading.kind === 'starting') return 'unclear';
    return reading.kind === 'marked' && this.#isOurs(reading.mark) ? 'member' : 'stranger';
  }

  // The pid of a founder is not given out again while its session has members.
  #ownsSession(session: number, all: ReadonlyMap<number, ProcessRow>): boolean {
    const founder = all.get(session);
    return this.#seen.has(session) && (founder === undefined || founder.startTime === this.#seen.get(session));
  }
}

function lineOf(pid: number, all: ReadonlyMap<number, ProcessRow>): Set<number> {
  const line = new Set<number>();
  for (let row = all.get(pid); row && !line.has(row.pid); row = all.get(row.ppid)) line.add(row.pid);
  return line;
}
