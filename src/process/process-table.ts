// Lists processes with their parents, start times and marks. Read-only. Uses /proc on Linux; elsewhere `ps`, without
// marks.
import {
  listProcRows,
  readProcMark,
  readProcRow,
  readProcStartTime,
  type MarkReading,
  type ProcessRow,
} from './proc-rows.js';
import { listPsRows, readPsRow } from './ps-rows.js';

export interface ProcessEntry {
  readonly pid: number;
  readonly ppid: number;
  readonly startTime: string;
  readonly mark: string | null;
}

export { MARK_NAME, type ProcessRow } from './proc-rows.js';

const hasProc = process.platform === 'linux';

function listRows(): ProcessRow[] {
  return hasProc ? listProcRows() : listPsRows();
}

export function readRow(pid: number): ProcessRow | null {
  return hasProc ? readProcRow(pid) : readPsRow(pid);
}

export function readStartTime(pid: number): string {
  return hasProc ? readProcStartTime(pid) : (readPsRow(pid)?.startTime ?? '');
}

export function readMark(pid: number): MarkReading {
  return hasProc ? readProcMark(pid, process.getuid?.()) : { kind: 'unmarked' };
}

// A snapshot of all processes. Reads the details of each process at most once.
export class ProcessTable {
  readonly rows: ReadonlyMap<number, ProcessRow> = new Map(listRows().map((row) => [row.pid, row]));
  readonly #marks = new Map<number, MarkReading>();

  markOf(pid: number): MarkReading {
    const known = this.#marks.get(pid);
    if (known) return known;
    const reading = readMark(pid);
    this.#marks.set(pid, reading);
    return reading;
  }
}

let nextTable: Promise<ProcessTable> | null = null;

// Resolves to a table that is read after this call. Callers in the same event-loop tick share one table, because many
// processes may be ended at once.
export function readTable(): Promise<ProcessTable> {
  nextTable ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    nextTable = null;
    return new ProcessTable();
  });
  return nextTable;
}

function markOf(pid: number): string | null {
  const reading = readMark(pid);
  return reading.kind === 'marked' ? reading.mark : null;
}

export function entryOf({ pid, ppid, startTime }: ProcessRow): ProcessEntry {
  return { pid, ppid, startTime, mark: markOf(pid) };
}

// Whether this is still the listed process. Another process may have its pid by now.
export function isStill({ pid, startTime, mark }: ProcessEntry): boolean {
  return readRow(pid)?.startTime === startTime && markOf(pid) === mark;
}

// Every process of this user that carries a mark.
export function listMarked(): ProcessEntry[] {
  return hasProc
    ? listRows()
        .map(entryOf)
        .filter(({ mark }) => mark !== null)
    : [];
}

export function descendantsOf(pid: number): ProcessEntry[] {
  return walkDown(listRows(), [pid]).map(entryOf);
}

// Returns the descendants of these processes, without the processes themselves.
export function walkDown(rows: readonly ProcessRow[], from: readonly number[]): ProcessRow[] {
  const children = new Map<number, ProcessRow[]>();
  for (const row of rows) {
    const siblings = children.get(row.ppid);
    if (siblings) siblings.push(row);
    else children.set(row.ppid, [row]);
  }
  const met = new Set(from);
  const descendants: ProcessRow[] = [];
  const open = [...from];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      if (met.has(child.pid)) continue;
      met.add(child.pid);
      descendants.push(child);
      open.push(child.pid);
    }
  }
  return descendants;
}
