// Deletes an ended run: its rows, logs and home, and its workspace if Parley created it. The folder of the run is first
// renamed (put aside), then the rows are deleted, then the renamed folder is removed. After a crash in between, the
// next start finishes or reverts the deletion, depending on whether the rows still exist.
import { phrase } from '../messages/phrase.js';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listFolder } from '../files/list-folder.js';
import { refusal } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import type { OnFailure } from '../kernel/log.js';
import type { AuditTrace } from '../store/audit.js';
import type { DeleteOutcome, RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { isStored } from '../journal/every-run.js';
import { removeFolder } from '../journal/remove-folder.js';
import { dataDirOf, runFolder } from '../journal/run-folder.js';

const ASIDE = '.deleted';

export type DeleteDeps = Pick<OrchestratorDeps, 'store' | 'clock' | 'ownership' | 'files' | 'dataDir'>;

// Who deletes the run and from which address, for the tombstone in the administrative journal.
export type DeletedBy = Omit<AuditTrace, 'at'>;

const NOBODY: DeletedBy = { actor: null, address: null };

export interface DeleteOptions {
  // A process of the run is alive on this host.
  readonly isRunHere: boolean;
  readonly by?: DeletedBy | undefined;
  readonly onFailure: OnFailure;
}

// A damaged run that no host works on is deleted in any state, because it can be neither answered nor canceled.
export async function deleteRun(
  deps: DeleteDeps,
  runId: string,
  { isRunHere, by = NOBODY, onFailure }: DeleteOptions,
): Promise<void> {
  const trace: AuditTrace = { at: deps.clock.now(), ...by };
  const salvaged = await deps.store.salvageRun(runId);
  const run = salvaged?.run ?? null;
  const damaged = (salvaged?.damage.length ?? 0) > 0 && !isRunHere && !(await deps.ownership.isRunElsewhere(runId));
  // The folder must not be renamed, not even briefly, while an agent works in it.
  if (run && !damaged && !isTerminal(run.status))
    throw refusal('RUN_NOT_ENDED.delete_state', { run: runId, status: run.status });
  const { path } = runFolder(deps.dataDir, runId);
  // A fork of the run has its own home but works in the same folder.
  const worker = run && (await deps.store.findAtWork(workspaceOf(deps, run)));
  if (worker && worker !== runId) throw refusal('SESSION_IN_USE.folder', { worker, run: runId });
  // A run that continues this one may be working in its home.
  const { home, continue_from: continues } = run?.spec ?? { home: null };
  const sharer = home === null || continues !== undefined ? null : await deps.store.findInHome(home, runId);
  if (sharer) return expectDeleted(runId, 'session_in_use', phrase('run_named', { run: sharer }));
  // Another host may start a run in this folder at any time, so the files are removed only after the rows, by the host
  // that has them.
  if (deps.files.layout !== 'single')
    return expectDeleted(runId, await deps.store.deleteRun(runId, { damaged, trace }));
  // Safe against concurrent deletions: each call puts back only a folder that it put aside itself, and never after the
  // rows were deleted.
  const isAside = run !== null && existsSync(path);
  if (isAside) renameSync(path, path + ASIDE);
  const outcome = await deps.store.deleteRun(runId, { damaged, trace }).catch((error: unknown) => {
    if (isAside) putBack(path);
    throw error;
  });
  const isGone = outcome === 'deleted' || outcome === 'unknown_run';
  if (isAside && isGone) await remove(path + ASIDE, runId, onFailure);
  else if (isAside) putBack(path);
  expectDeleted(runId, outcome);
}

function expectDeleted(runId: string, outcome: DeleteOutcome, sharer = phrase('another_run')): void {
  if (outcome === 'deleted') return;
  if (outcome === 'not_ended') throw refusal('RUN_NOT_ENDED.delete', { run: runId });
  if (outcome !== 'session_in_use') throw refusal('RUN_NOT_FOUND.unknown', { run: runId });
  throw refusal('SESSION_IN_USE.home', { sharer, run: runId });
}

// The workspace in the data directory in which the run was created, which may be on another host.
function workspaceOf({ dataDir }: Pick<DeleteDeps, 'dataDir'>, { run_id: runId, spec: { home } }: RunRecord): string {
  return runFolder(home === null ? dataDir : dataDirOf(home), runId).workspace;
}

// Replaces a folder that was created at the same path in the meantime.
function putBack(path: string): void {
  if (!existsSync(path + ASIDE)) return;
  rmSync(path, { recursive: true, force: true });
  renameSync(path + ASIDE, path);
}

// The run counts as deleted once its rows are. Files that cannot be removed are reported, and the next start tries
// again.
async function remove(path: string, runId: string, onFailure: OnFailure): Promise<void> {
  try {
    await removeFolder(path);
  } catch (error) {
    onFailure(runId, error);
  }
}

// Completes deletions that a crash interrupted: finishes them if the rows are deleted, else puts the folder back.
export async function finishDeletions(
  deps: Pick<DeleteDeps, 'store' | 'files' | 'dataDir'>,
  onFailure: OnFailure,
): Promise<void> {
  const runs = dirname(runFolder(deps.dataDir, 'any').path);
  for (const name of await listAside(runs)) {
    const runId = name.slice(0, -ASIDE.length);
    if (await isStored(deps.store, runId)) putBack(join(runs, runId));
    // If hosts share the store, the run may still be imported.
    else if (deps.files.layout === 'single') await remove(join(runs, name), runId, onFailure);
  }
}

async function listAside(runs: string): Promise<string[]> {
  const names: string[] = [];
  if (!existsSync(runs)) return names;
  for await (const entries of listFolder(runs, 1000))
    names.push(...entries.map(({ name }) => name.toString()).filter((name) => name.endsWith(ASIDE)));
  return names;
}
