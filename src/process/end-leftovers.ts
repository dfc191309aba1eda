// Ends processes that a killed server left running: those that carry one of our marks, with all their descendants.
import { endTree } from './end-tree.js';
import { LeftBehindError } from './left-behind-error.js';
import { readTable, type ProcessEntry } from './process-table.js';
import { ProcessTree } from './process-tree.js';
import { systemTimers, type Timers } from './timers.js';

// Resolves to all such processes when they have exited; rejects with a LeftBehindError if one cannot be ended.
export async function endLeftovers(
  isOurs: (mark: string) => boolean,
  options: { readonly graceMs: number; readonly timers?: Timers },
): Promise<ProcessEntry[]> {
  const tree = new ProcessTree(isOurs, null);
  const { processes, left } = await endTree(async () => tree.look(await readTable()), {
    graceMs: options.graceMs,
    timers: options.timers ?? systemTimers,
  });
  if (left.length > 0)
    throw new LeftBehindError(
      left.map(({ pid }) => pid),
      null,
    );
  return [...processes];
}
