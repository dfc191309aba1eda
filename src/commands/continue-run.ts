// A new run that goes on with the session of an ended one: with a new prompt, or with what was said last.
import { RequestError } from '../run/request-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { isTerminal } from '../run/statechart.js';
import { buildReplyPrompt } from '../run/turn-prompt.js';
import type { Actor, RunRecord } from '../store/store.js';
import type { CreateRunRequest } from './create-request.js';
import { createRun, type Origin } from './create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { forkSource } from '../turn/fork-source.js';
import { loadRun } from '../journal/load-run.js';

export type ContinueRequest = Pick<CreateRunRequest, 'prompt' | 'request_id' | 'force'>;
export type RetryRequest = Pick<CreateRunRequest, 'request_id' | 'force'>;

export async function continueRun(
  deps: OrchestratorDeps,
  runId: string,
  request: ContinueRequest,
  actor: Actor | undefined,
): Promise<RunRecord> {
  const source = await loadEnded(deps, runId);
  const handle = await loadSession(deps, source);
  if (!handle) throw new RequestError('NO_SESSION', `run ${runId} has no stored session that could be continued`);
  return createRun(deps, { ...inherited(source), ...request }, { actor, continuation: { run_id: runId, handle } });
}

// The same again: from the stored session if there is one, with the last answer, else from the beginning, which may be
// a copy.
export async function retryRun(
  deps: OrchestratorDeps,
  runId: string,
  request: RetryRequest,
  actor: Actor | undefined,
): Promise<RunRecord> {
  const source = await loadEnded(deps, runId);
  const { again, origin } = await planRetry(deps, source, await loadSession(deps, source));
  return createRun(deps, { ...again, ...request }, { ...origin, actor });
}

// What a retry of the run asks for, and what it starts from.
export async function planRetry(
  deps: OrchestratorDeps,
  source: RunRecord,
  handle: EngineSessionHandle | null,
): Promise<{ readonly again: CreateRunRequest; readonly origin: Origin }> {
  if (handle)
    return {
      again: { ...inherited(source), prompt: await lastWords(deps, source) },
      origin: { continuation: { run_id: source.run_id, handle } },
    };
  const again = { ...inherited(source), prompt: source.spec.prompt };
  const fork = forkSource(source.spec);
  if (fork) return { again, origin: { fork } };
  return isOwnWorkspace(source)
    ? { again, origin: {} }
    : { again: { ...again, cwd: source.spec.cwd }, origin: { beside: source } };
}

// One that was in a process only has ended with it.
export async function loadSession(deps: OrchestratorDeps, source: RunRecord): Promise<EngineSessionHandle | null> {
  const handle = await deps.store.loadHandle(source.request_id);
  return handle?.handle_type === 'session_id' ? handle : null;
}

async function loadEnded(deps: OrchestratorDeps, runId: string): Promise<RunRecord> {
  const source = await loadRun(deps.store, runId);
  if (!isTerminal(source.status))
    throw new RequestError(
      'RUN_NOT_ENDED',
      `run ${runId} is ${source.status}: only an ended run can be continued or tried again`,
    );
  return source;
}

export function inherited({ spec }: RunRecord): Omit<CreateRunRequest, 'prompt' | 'cwd' | 'request_id' | 'force'> {
  return {
    engine: spec.engine,
    execution_mode: spec.execution_mode,
    permission: spec.permission,
    runtime_options: spec.runtime_options,
    labels: spec.labels,
    ...(spec.model === undefined ? {} : { model: spec.model }),
    ...(spec.output_schema === undefined ? {} : { output_schema: spec.output_schema }),
  };
}

// An approval is never carried over: what was allowed then need not be what is asked for now.
async function lastWords(deps: OrchestratorDeps, source: RunRecord): Promise<string> {
  const latest = await deps.store.loadLatest(source.run_id);
  const answered = latest?.state === 'answered' || latest?.state === 'auto_decided' ? latest : null;
  if (!answered?.resolution || answered.resolution.finish || answered.question.kind === 'approval')
    return source.spec.prompt;
  return buildReplyPrompt(answered.resolution.response);
}

function isOwnWorkspace({ run_id: runId, spec }: RunRecord): boolean {
  return spec.cwd.includes(runId);
}
