// Ends processes and waits until they are gone: SIGTERM, after the grace SIGKILL, and after some patience it says who
// is left rather than wait for ever (a process stuck in the kernel, or one of another user). Looks again after each
// round, because the dying may start others. A pid is signalled only after it was read again.
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
  readonly found: readonly ProcessEntry[];
  readonly left: readonly ProcessEntry[];
}

// A killed process is gone within milliseconds, unless it waits for a device.
export const KILL_PATIENCE_MS = 10_000;
const LONGEST_WAIT_MS = 64;
// About a second: what starts a program is done with it in microseconds, on a busy machine in milliseconds.
const UNSURE_LOOKS = 20;

export async function endTree(
  look: () => Look | Promise<Look>,
  { graceMs, timers, kill = systemKill }: EndTreeOptions,
): Promise<TreeEnd> {
  let alive = await findAlive(look);
  if (alive.length === 0) return { found: [], left: [] };
  const found = new Map<string, ProcessEntry>();
  const force = new Force(graceMs, timers);
  try {
    while (alive.length > 0 && force.level !== 'spent') {
      const { level } = force;
      for (const entry of alive) {
        found.set(`${entry.pid} ${entry.startTime}`, entry);
        if (isStill(entry)) kill(entry.pid, level === 'ask' ? 'SIGTERM' : 'SIGKILL');
      }
      await untilGone(alive, () => force.level !== level);
      alive = await findAlive(look);
    }
  } finally {
    force.stop();
  }
  return { found: [...found.values()], left: alive };
}

// That nobody is left is believed the second time: while one looks, a member may start another and go. A look that is
// not certain does not count, within reason.
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

// A look that fails (no file descriptor is free, say) is no look; one that fails to the last is an error.
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

// Polls in real time: how fast the kernel works is not a matter of deadlines.
async function untilGone(entries: readonly ProcessEntry[], interrupted: () => boolean): Promise<void> {
  for (const wait of waits()) {
    if (interrupted() || !entries.some(isStill)) return;
    await setTimeout(wait);
  }
}

// Short at first, as most is over at once.
function* waits(): Generator<number> {
  for (let wait = 1; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) yield wait;
}

function systemKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Gone by itself, or not ours to end: the next look tells which.
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error;
  }
}
