// Deletes an ended run: its rows, logs, home, and its workspace if it was ours. A crash in the middle is made good at
// the next start: only a folder that was put aside for it is ever removed, and one that stands where it has to go back
// to.
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listFolder } from '../files/list-folder.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import type { AuditTrace } from '../store/audit.js';
import type { DeleteOutcome, RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { isStored } from '../journal/every-run.js';
import { removeFolder } from '../journal/remove-folder.js';
import { dataDirOf, runFolder } from '../journal/run-folder.js';

const ASIDE = '.deleted';

type OnFailure = (runId: string, error: unknown) => void;

// Who deletes it and from where, for the tombstone in the administrative journal.
export type DeletedBy = Omit<AuditTrace, 'at'>;

const NOBODY: DeletedBy = { actor: null, address: null };

export interface DeleteOptions {
  readonly isPlayed: boolean;
  readonly by?: DeletedBy | undefined;
  readonly onFailure: OnFailure;
}

// `isPlayed`: a process of the run is under way here. A damaged run that nobody works on is deleted whatever its state
// is: it could neither be answered nor canceled.
export async function deleteRun(
  deps: OrchestratorDeps,
  runId: string,
  { isPlayed, by = NOBODY, onFailure }: DeleteOptions,
): Promise<void> {
  const trace: AuditTrace = { at: deps.clock.now(), ...by };
  const salvaged = await deps.store.salvageRun(runId);
  const run = salvaged?.run ?? null;
  const damaged = (salvaged?.damage.length ?? 0) > 0 && !isPlayed && !(await deps.cluster?.isPlayed(runId));
  // Its folder must not be moved, not even for a moment, while an agent is at work in it.
  if (run && !damaged && !isTerminal(run.status))
    throw new RequestError('RUN_NOT_ENDED', `run ${runId} is ${run.status}: cancel it first`);
  const { path } = runFolder(deps.dataDir, runId);
  // A fork of it has a home of its own, but not a folder to work in.
  const worker = run && (await deps.store.findAtWork(workspaceOf(deps, run)));
  if (worker && worker !== runId)
    throw new RequestError(
      'SESSION_IN_USE',
      `run ${worker} works in the folder of run ${runId}: wait until it has ended, or cancel it`,
    );
  // Nor while one that continues it may be at work in its home.
  const { home, continue_from: continues } = run?.spec ?? { home: null };
  const sharer = home === null || continues !== undefined ? null : await deps.store.findInHome(home, runId);
  if (sharer) return check(runId, 'session_in_use', `run ${sharer}`);
  // Others may begin with it while it is decided: its files go after its rows, wherever they are.
  if (deps.cluster) return check(runId, await deps.store.deleteRun(runId, { damaged, trace }));
  // Several may delete it at once: only what was put aside here is put back here, and never when its rows are gone.
  const isAside = run !== null && existsSync(path);
  if (isAside) renameSync(path, path + ASIDE);
  const outcome = await deps.store.deleteRun(runId, { damaged, trace }).catch((error: unknown) => {
    if (isAside) putBack(path);
    throw error;
  });
  const isGone = outcome === 'deleted' || outcome === 'unknown_run';
  if (isAside && isGone) await remove(path + ASIDE, runId, onFailure);
  else if (isAside) putBack(path);
  check(runId, outcome);
}

function check(runId: string, outcome: DeleteOutcome, sharer = 'another run'): void {
  if (outcome === 'deleted') return;
  if (outcome === 'not_ended') throw new RequestError('RUN_NOT_ENDED', `run ${runId} is at work: cancel it first`);
  if (outcome !== 'session_in_use') throw new RequestError('RUN_NOT_FOUND', `there is no run ${runId}`);
  throw new RequestError(
    'SESSION_IN_USE',
    `${sharer} continues the session of run ${runId} and lives in its home: delete that one first`,
  );
}

// Where it was created, which may be a path of another host: its home tells.
function workspaceOf({ dataDir }: OrchestratorDeps, { run_id: runId, spec: { home } }: RunRecord): string {
  return runFolder(home === null ? dataDir : dataDirOf(home), runId).workspace;
}

// Where somebody has made it again meanwhile, what was put aside counts.
function putBack(path: string): void {
  if (!existsSync(path + ASIDE)) return;
  rmSync(path, { recursive: true, force: true });
  renameSync(path + ASIDE, path);
}

// The run is deleted when its rows are. What cannot be removed of its files is told, and tried again at the next start.
async function remove(path: string, runId: string, onFailure: OnFailure): Promise<void> {
  try {
    await removeFolder(path);
  } catch (error) {
    onFailure(runId, error);
  }
}

// What a deletion left that was cut off: done if the rows are gone, undone if they are not.
export async function finishDeletions(deps: OrchestratorDeps, onFailure: OnFailure): Promise<void> {
  const runs = dirname(runFolder(deps.dataDir, 'any').path);
  for (const name of await listAside(runs)) {
    const runId = name.slice(0, -ASIDE.length);
    if (await isStored(deps.store, runId)) putBack(join(runs, runId));
    // Where hosts share the store, a run that is not there may still have to be brought.
    else if (!deps.cluster) await remove(join(runs, name), runId, onFailure);
  }
}

async function listAside(runs: string): Promise<string[]> {
  const names: string[] = [];
  if (!existsSync(runs)) return names;
  for await (const entries of listFolder(runs, 1000))
    names.push(...entries.map(({ name }) => name.toString()).filter((name) => name.endsWith(ASIDE)));
  return names;
}
