// A new run that begins with a copy of another's conversation. The source is only read: it stays as it is, in whatever
// state.
import { findEngine } from '../engines/registry.js';
import { RequestError } from '../run/request-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { Actor, RunRecord } from '../store/store.js';
import { inherited, type ContinueRequest } from './continue-run.js';
import { createRun } from './create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { loadRun } from '../journal/load-run.js';
import { isSessionThere } from '../turn/session-there.js';

export async function forkRun(
  deps: OrchestratorDeps,
  runId: string,
  request: ContinueRequest,
  actor: Actor | undefined,
): Promise<RunRecord> {
  const source = await loadRun(deps.store, runId);
  const { engine } = source.spec;
  if (findEngine(engine).command.buildFork === undefined)
    throw new RequestError(
      'FORK_UNSUPPORTED',
      `${engine} cannot begin with a copy of a conversation; parley continue goes on with an ended one`,
    );
  const handle = await deps.store.loadHandle(source.request_id);
  if (handle?.handle_type !== 'session_id' || !(await mayBeThere(deps, runId, request, handle)))
    throw new RequestError('NO_SESSION', `run ${runId} has no stored session that could be copied`);
  return createRun(deps, { ...inherited(source), ...request }, { actor, fork: { run_id: runId, handle } });
}

// A request that is known is the same run, whatever has become of the session since. One whose files are on another
// host is looked for there, when the run begins.
async function mayBeThere(
  deps: OrchestratorDeps,
  runId: string,
  { request_id: requestId }: ContinueRequest,
  handle: EngineSessionHandle,
): Promise<boolean> {
  if (requestId !== undefined && (await deps.store.loadRequest(requestId))) return true;
  if (deps.cluster && !(await deps.cluster.hasFiles(runId))) return true;
  return isSessionThere(deps, handle);
}
