// Finds the processes that belong together, however they were detached: processes that carry the mark, processes in a
// session that a member created, known members, and all descendants of these. Members are remembered, so a process
// whose parent died stays a member. This process and its ancestors are never members.
import { entryOf, ProcessTable, walkDown, type ProcessEntry, type ProcessRow } from './process-table.js';

export interface Look {
  // Members that are alive now.
  readonly members: readonly ProcessEntry[];
  // False while the membership of some processes is unknown.
  readonly certain: boolean;
}

export class ProcessTree {
  readonly #isOurs: (mark: string) => boolean;
  // Processes older than the root cannot belong to it and are skipped.
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

  #judge(row: ProcessRow, table: ProcessTable): 'member' | 'other' | 'unclear' {
    if (this.#seen.get(row.pid) === row.startTime || this.#ownsSession(row.session, table.rows)) return 'member';
    const reading = table.markOf(row.pid);
    if (reading.kind === 'starting') return 'unclear';
    return reading.kind === 'marked' && this.#isOurs(reading.mark) ? 'member' : 'other';
  }

  // The system does not reuse the pid of a session's creator while the session has members.
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
