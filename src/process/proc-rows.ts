// The process table of Linux, read from /proc. Leaves out zombies: they have exited, and only wait for their parent to
// collect the exit status.
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';

export interface ProcessRow {
  readonly pid: number;
  readonly ppid: number;
  // The process that created the session. Only fork inherits it.
  readonly session: number;
  // Distinguishes two processes that had the same pid one after the other; '' where unknown.
  readonly startTime: string;
}

export const MARK_NAME = 'PARLEY_TURN';

const NAME = Buffer.from(`${MARK_NAME}=`);

export function listProcRows(): ProcessRow[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcRow(Number(name)))
    .filter((row) => row !== null);
}

export function readProcRow(pid: number): ProcessRow | null {
  const [state, ppid, , session, ...rest] = readStat(pid);
  if (state === undefined || state === 'Z' || state === 'X') return null;
  return { pid, ppid: Number(ppid), session: Number(session), startTime: rest[START_TIME] ?? '' };
}

// Also works for a zombie, because a child may exit before it is read.
export function readProcStartTime(pid: number): string {
  return readStat(pid).slice(4)[START_TIME] ?? '';
}

// Field 22, counted from after the session.
const START_TIME = 15;

// Returns the fields from the third on: the second is the program's name in brackets, which can contain any character.
function readStat(pid: number): string[] {
  const stat = readIfThere(`/proc/${pid}/stat`)?.toString('latin1');
  return stat ? stat.slice(stat.lastIndexOf(')') + 2).split(' ') : [];
}

// `starting`: the process is executing another program, and its environment cannot be read for an instant.
export type MarkReading =
  | { readonly kind: 'marked'; readonly mark: string }
  | { readonly kind: 'unmarked' }
  | { readonly kind: 'starting' };

// Returns the mark in the environment with which a process was started. Processes of other users count as unmarked.
export function readProcMark(pid: number, uid: number | undefined): MarkReading {
  let environment = readIfThere(`/proc/${pid}/environ`);
  if (environment?.length === 0) {
    // An empty environment is real only together with a command line; kernel threads have neither.
    if (readIfThere(`/proc/${pid}/cmdline`)?.length === 0)
      return readProcRow(pid)?.ppid === KERNEL_PARENT ? { kind: 'unmarked' } : { kind: 'starting' };
    environment = readIfThere(`/proc/${pid}/environ`);
  }
  const mark = environment && findMark(environment);
  return mark && ownerOf(pid) === uid ? { kind: 'marked', mark } : { kind: 'unmarked' };
}

const KERNEL_PARENT = 2;

function findMark(environment: Buffer): string | null {
  let at = environment.indexOf(NAME);
  while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(NAME, at + 1);
  if (at < 0) return null;
  const end = environment.indexOf(0, at);
  return environment.toString('utf8', at + NAME.length, end < 0 ? environment.length : end);
}

function ownerOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
}

// The process has exited, or we may not read it: both are normal.
const UNREADABLE = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM']);

function readIfThere(path: string): Buffer | null {
  try {
    return readProcFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && UNREADABLE.has(String(error.code))) return null;
    throw error;
  }
}

// readFileSync allocates 64 KiB for each file whose size the system does not tell, and a table reads hundreds of them.
let space = Buffer.allocUnsafe(16 * 1024);

function readProcFile(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    for (let length = 0; ;) {
      if (length === space.length) space = Buffer.concat([space], 2 * length);
      const read = readSync(file, space, length, space.length - length, null);
      if (read === 0) return Buffer.from(space.subarray(0, length));
      length += read;
    }
  } finally {
    closeSync(file);
  }
}
