// Loads a run that the caller named, or throws the error that it does not exist.
import { unlessDamaged } from '../kernel/stored-json.js';
import { refusal } from '../run/request-error.js';
import type { SalvagedRun } from '../store/salvage.js';
import type { Protocol, RunRecord, Store } from '../store/store.js';
import type { RunSummary } from '../store/summary-reader.js';

export async function loadRun(store: Store, runId: string): Promise<RunRecord> {
  return orNotFound(await store.loadRun(runId), runId);
}

// For showing and exporting: reads as much of a damaged run as possible.
export async function loadReadable(store: Store, runId: string): Promise<RunRecord> {
  let isDamaged = false;
  const run = await unlessDamaged(store.loadRun(runId), () => (isDamaged = true));
  return isDamaged ? (await salvageRun(store, runId)).run : orNotFound(run, runId);
}

// Names every damaged part of the run.
export async function salvageRun(store: Store, runId: string): Promise<SalvagedRun> {
  return orNotFound(await store.salvageRun(runId), runId);
}

// Returns the last event of a journal according to the row of its run.
export function headOf({ heads }: Pick<RunRecord, 'heads'>, protocol: Protocol): number {
  return protocol === 'rasp' ? heads.rasp_seq : heads.fcmp_seq;
}

function orNotFound<T>(run: T | null, runId: string): T {
  if (run === null) throw refusal('RUN_NOT_FOUND.unknown', { run: runId });
  return run;
}

// Like loadReadable in short form, for callers that need the state, the heads or whether the run exists.
export async function loadReadableSummary(store: Store, runId: string): Promise<RunSummary> {
  let isDamaged = false;
  const run = await unlessDamaged(store.summaries.loadRun(runId), () => (isDamaged = true));
  if (!isDamaged) return orNotFound(run, runId);
  return { ...(await salvageRun(store, runId)).run, truncated: [] };
}
