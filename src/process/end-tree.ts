// Ends processes and waits until they have exited: SIGTERM, then SIGKILL after the grace period. After a time limit it
// reports the remaining processes instead of waiting forever (a process may be stuck in the kernel or belong to another
// user). Lists the tree again after each round, because dying processes may start others. Checks a pid again before it
// is signalled.
import { setTimeout } from 'node:timers/promises';
import { isStill, type ProcessEntry } from './process-table.js';
import type { Look } from './process-tree.js';
import type { Timers } from './timers.js';

export interface EndTreeOptions {
  readonly graceMs: number;
  readonly timers: Timers;
  readonly kill?: (pid: number, signal: NodeJS.Signals) => void;
}

export interface TreeEnd {
  readonly processes: readonly ProcessEntry[];
  readonly left: readonly ProcessEntry[];
}

// A killed process exits within milliseconds, unless it waits for a device.
export const KILL_PATIENCE_MS = 10_000;
const LONGEST_WAIT_MS = 64;
// About a second: starting a program takes microseconds, on a busy machine milliseconds.
const UNSURE_LOOKS = 20;

export async function endTree(
  look: () => Look | Promise<Look>,
  { graceMs, timers, kill = systemKill }: EndTreeOptions,
): Promise<TreeEnd> {
  let alive = await findAlive(look);
  if (alive.length === 0) return { processes: [], left: [] };
  const entries = new Map<string, ProcessEntry>();
  const force = new Force(graceMs, timers);
  try {
    while (alive.length > 0 && force.level !== 'spent') {
      const { level } = force;
      for (const entry of alive) {
        entries.set(`${entry.pid} ${entry.startTime}`, entry);
        if (isStill(entry)) kill(entry.pid, level === 'ask' ? 'SIGTERM' : 'SIGKILL');
      }
      await untilGone(alive, () => force.level !== level);
      alive = await findAlive(look);
    }
  } finally {
    force.stop();
  }
  return { processes: [...entries.values()], left: alive };
}

// Trusts an empty list only the second time: while the table is read, a member may start another process and exit. An
// uncertain list does not count, up to a limit.
async function findAlive(look: () => Look | Promise<Look>): Promise<readonly ProcessEntry[]> {
  let sure = 0;
  let unsure = 0;
  for (const wait of waits()) {
    const { members, certain } = await lookOr(look, unsure);
    if (members.length > 0) return members;
    if (certain) sure += 1;
    else unsure += 1;
    if (sure === 2 || unsure === UNSURE_LOOKS) break;
    if (!certain) await setTimeout(wait);
  }
  return [];
}

// Ignores a failed read of the table (no free file descriptor, for instance), unless the last attempt fails as well.
async function lookOr(look: () => Look | Promise<Look>, unsure: number): Promise<Look> {
  try {
    return await look();
  } catch (error) {
    if (unsure === UNSURE_LOOKS - 1) throw error;
    return { members: [], certain: false };
  }
}

// ask → (grace) → kill → (patience) → spent
class Force {
  #level: 'ask' | 'kill' | 'spent' = 'ask';
  #cancel: () => void;

  constructor(graceMs: number, timers: Timers) {
    this.#cancel = timers.set(graceMs, () => {
      this.#level = 'kill';
      this.#cancel = timers.set(KILL_PATIENCE_MS, () => {
        this.#level = 'spent';
      });
    });
  }

  get level() {
    return this.#level;
  }

  stop(): void {
    this.#cancel();
  }
}

// Polls in real time, because the speed of the kernel does not depend on injected timers.
async function untilGone(entries: readonly ProcessEntry[], interrupted: () => boolean): Promise<void> {
  for (const wait of waits()) {
    if (interrupted() || !entries.some(isStill)) return;
    await setTimeout(wait);
  }
}

// Short at first, because most processes exit at once.
function* waits(): Generator<number> {
  for (let wait = 1; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) yield wait;
}

function systemKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The process has exited, or we may not signal it; the next list shows which.
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error;
  }
}
