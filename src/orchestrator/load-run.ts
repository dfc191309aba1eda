// A run that the caller named, or the error that says that there is none.
import { RequestError } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';

export async function loadRun(store: Store, runId: string): Promise<RunRecord> {
  const run = await store.loadRun(runId);
  if (!run) throw new RequestError('RUN_NOT_FOUND', `there is no run ${runId}`);
  return run;
}
