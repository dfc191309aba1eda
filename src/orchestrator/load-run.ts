// A run that the caller named, or the error that says that there is none.
import { RequestError } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';
import type { RunSummary } from '../store/summary-reader.js';

export async function loadRun(store: Store, runId: string): Promise<RunRecord> {
  const run = await store.loadRun(runId);
  if (!run) throw new RequestError('RUN_NOT_FOUND', `there is no run ${runId}`);
  return run;
}

// The same in short form, for callers that need its state, its heads or whether it exists.
export async function loadRunSummary(store: Store, runId: string): Promise<RunSummary> {
  const run = await store.summaries.loadRun(runId);
  if (!run) throw new RequestError('RUN_NOT_FOUND', `there is no run ${runId}`);
  return run;
}
