// Creates a run that starts from a copy of another run's conversation. The source is only read, so it may be in any
// state.
import { findEngine } from '../engines/registry.js';
import { refusal } from '../run/request-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunRecord } from '../store/store.js';
import { inheritRequest, type ContinueRequest, type FollowUp } from './continue-run.js';
import { createRun, type CreateDeps } from './create-run.js';
import { loadRun } from '../journal/load-run.js';
import { isSessionThere } from '../turn/session-there.js';

export async function forkRun(
  deps: CreateDeps,
  runId: string,
  { request, actor }: FollowUp<ContinueRequest>,
): Promise<RunRecord> {
  const source = await loadRun(deps.store, runId);
  const { engine } = source.spec;
  if (findEngine(engine).command.buildFork === undefined) throw refusal('FORK_UNSUPPORTED', { engine, run: runId });
  const handle = await deps.store.loadHandle(source.request_id);
  if (handle?.handle_type !== 'session_id' || !((await isKnown(deps, request)) || (await canCopy(deps, runId, handle))))
    throw refusal('NO_SESSION.fork', { run: runId });
  return createRun(
    deps,
    { ...inheritRequest(source), ...request },
    { actor, isFollowUp: true, fork: { run_id: runId, handle } },
  );
}

// Repeating a known request returns its run, even if the session was deleted since.
async function isKnown({ store }: Pick<CreateDeps, 'store'>, { request_id: id }: ContinueRequest): Promise<boolean> {
  return id !== undefined && (await store.loadRequest(id)) !== null;
}

// A session whose files are on another host is looked up there when the run starts.
async function canCopy(
  deps: Pick<CreateDeps, 'files' | 'runtime'>,
  runId: string,
  handle: EngineSessionHandle,
): Promise<boolean> {
  return !(await deps.files.isHere(runId)) || (await isSessionThere(deps, handle));
}
