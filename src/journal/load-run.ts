// A run that the caller named, or the error that says that there is none.
import { unlessDamaged } from '../kernel/stored-json.js';
import { RequestError } from '../run/request-error.js';
import type { SalvagedRun } from '../store/salvage.js';
import type { Protocol, RunRecord, Store } from '../store/store.js';
import type { RunSummary } from '../store/summary-reader.js';

export async function loadRun(store: Store, runId: string): Promise<RunRecord> {
  return orNotFound(await store.loadRun(runId), runId);
}

// For showing and exporting: a damaged run is read as far as possible.
export async function loadReadable(store: Store, runId: string): Promise<RunRecord> {
  let isDamaged = false;
  const run = await unlessDamaged(store.loadRun(runId), () => (isDamaged = true));
  return isDamaged ? (await salvageRun(store, runId)).run : orNotFound(run, runId);
}

// With everything that is damaged named.
export async function salvageRun(store: Store, runId: string): Promise<SalvagedRun> {
  return orNotFound(await store.salvageRun(runId), runId);
}

// The last event of a journal by the row of its run.
export function headOf({ heads }: Pick<RunRecord, 'heads'>, protocol: Protocol): number {
  return protocol === 'rasp' ? heads.rasp_seq : heads.fcmp_seq;
}

function orNotFound<T>(found: T | null, runId: string): T {
  if (found === null) throw new RequestError('RUN_NOT_FOUND', `there is no run ${runId}`);
  return found;
}

// The same in short form, for callers that need its state, its heads or whether it exists.
export async function loadReadableSummary(store: Store, runId: string): Promise<RunSummary> {
  let isDamaged = false;
  const run = await unlessDamaged(store.summaries.loadRun(runId), () => (isDamaged = true));
  if (!isDamaged) return orNotFound(run, runId);
  return { ...(await salvageRun(store, runId)).run, truncated: [] };
}
