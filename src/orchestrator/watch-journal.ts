// A run's events from a cursor on, first the stored ones, then each as it is stored, until the run has ended.
// Everything is read from the store: nothing comes twice, nothing is left out, and a slow reader holds nothing up.
import { DamagedDataError } from '../kernel/stored-json.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import type { Protocol, Store } from '../store/store.js';
import { headOf, loadRun } from '../journal/load-run.js';
import type { Wakeups } from '../journal/wakeups.js';

const PAGE = 500;

// Event texts in groups; the first has the seq after the cursor.
export async function* watchJournal(
  deps: { readonly store: Store; readonly wakeups: Wakeups },
  runId: string,
  protocol: Protocol,
  cursor = 0,
): AsyncGenerator<readonly string[]> {
  const head = headOf(await loadRun(deps.store, runId), protocol);
  if (cursor > head)
    throw new RequestError('CURSOR_BEYOND_END', `run ${runId} has ${head} events so far, none after ${cursor}`);
  const watch = deps.wakeups.watch(runId);
  try {
    for (let seq = cursor; ;) {
      const { version } = watch;
      // Read before its events: if it has ended, they are all there.
      const run = await loadRun(deps.store, runId);
      const lines = await deps.store.readJournal(runId, protocol, { fromSeq: seq + 1, limit: PAGE });
      seq += lines.length;
      if (lines.length > 0) yield lines;
      else if (seq < headOf(run, protocol))
        throw new DamagedDataError(
          `${protocol} events ${seq + 1} to ${headOf(run, protocol)} of run ${runId} are missing from the journal`,
        );
      else if (isTerminal(run.status)) return;
      else await watch.changed(version);
    }
  } finally {
    watch.close();
  }
}
