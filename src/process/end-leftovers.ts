// Ends what a killed server left running: processes that carry a mark of ours, with all their descendants.
import { endTree } from './end-tree.js';
import { LeftBehindError } from './left-behind-error.js';
import { readTable, type ProcessEntry } from './process-table.js';
import { ProcessTree } from './process-tree.js';
import { systemTimers, type Timers } from './timers.js';

// Resolves with all that was found when it is gone; rejects with a LeftBehindError when something cannot be ended.
export async function endLeftovers(
  isOurs: (mark: string) => boolean,
  options: { readonly graceMs: number; readonly timers?: Timers },
): Promise<ProcessEntry[]> {
  const tree = new ProcessTree(isOurs, null);
  const { found, left } = await endTree(async () => tree.look(await readTable()), {
    graceMs: options.graceMs,
    timers: options.timers ?? systemTimers,
  });
  if (left.length > 0)
    throw new LeftBehindError(
      left.map(({ pid }) => pid),
      null,
    );
  return [...found];
}
