// Creates a run that continues the session of an ended run: with a new prompt, or as a retry of its last turn.
import { refusal } from '../run/request-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { isTerminal } from '../run/statechart.js';
import { buildReplyPrompt } from '../run/turn-prompt.js';
import type { Actor, RunRecord } from '../store/store.js';
import type { CreateRunRequest } from './create-request.js';
import { createRun, type CreateDeps, type Origin } from './create-run.js';
import { forkSource } from '../turn/fork-source.js';
import { loadRun } from '../journal/load-run.js';

export type ContinueRequest = Pick<CreateRunRequest, 'prompt' | 'request_id' | 'force'>;
export type RetryRequest = Pick<CreateRunRequest, 'request_id' | 'force'>;

// A request of a caller about an existing run.
export interface FollowUp<Request> {
  readonly request: Request;
  readonly actor?: Actor | undefined;
}

export async function continueRun(
  deps: CreateDeps,
  runId: string,
  { request, actor }: FollowUp<ContinueRequest>,
): Promise<RunRecord> {
  const source = await loadEnded(deps, runId);
  const handle = await loadSession(deps, source);
  if (!handle) throw refusal('NO_SESSION.continue', { run: runId });
  return createRun(
    deps,
    { ...inheritRequest(source), ...request },
    { actor, isFollowUp: true, continuation: { run_id: runId, handle } },
  );
}

// Repeats the last turn: from the stored session with the last answer if there is a session, else from the start. A
// retry of a fork starts from the copied session again.
export async function retryRun(
  deps: CreateDeps,
  runId: string,
  { request, actor }: FollowUp<RetryRequest>,
): Promise<RunRecord> {
  const source = await loadEnded(deps, runId);
  const plan = await planRetry(deps, source, await loadSession(deps, source));
  return createRun(deps, { ...plan.request, ...request }, { ...plan.origin, actor });
}

export interface RetryPlan {
  readonly request: CreateRunRequest;
  readonly origin: Origin;
}

export async function planRetry(
  deps: CreateDeps,
  source: RunRecord,
  handle: EngineSessionHandle | null,
): Promise<RetryPlan> {
  if (handle)
    return {
      request: { ...inheritRequest(source), prompt: await lastPrompt(deps, source) },
      origin: { isFollowUp: true, continuation: { run_id: source.run_id, handle } },
    };
  const request = { ...inheritRequest(source), prompt: source.spec.prompt };
  const fork = forkSource(source.spec);
  if (fork) return { request, origin: { isFollowUp: true, fork } };
  return isOwnWorkspace(source)
    ? { request, origin: { isFollowUp: true } }
    : { request: { ...request, cwd: source.spec.cwd }, origin: { isFollowUp: true, beside: source } };
}

// A session in a process ended with that process, so it cannot be continued.
export async function loadSession(
  { store }: Pick<CreateDeps, 'store'>,
  source: RunRecord,
): Promise<EngineSessionHandle | null> {
  const handle = await store.loadHandle(source.request_id);
  return handle?.handle_type === 'session_id' ? handle : null;
}

async function loadEnded({ store }: Pick<CreateDeps, 'store'>, runId: string): Promise<RunRecord> {
  const source = await loadRun(store, runId);
  if (!isTerminal(source.status)) throw refusal('RUN_NOT_ENDED.continue', { run: runId, status: source.status });
  return source;
}

// The members of a request that a follow-up run takes from its source.
export function inheritRequest({ spec }: RunRecord): Omit<CreateRunRequest, 'prompt' | 'cwd' | 'request_id' | 'force'> {
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

// The prompt of the last turn. An approval is never carried over: the engine may ask about another action this time.
async function lastPrompt({ store }: Pick<CreateDeps, 'store'>, source: RunRecord): Promise<string> {
  const latest = await store.loadLatestInteraction(source.run_id);
  const answered = latest?.state === 'answered' || latest?.state === 'auto_decided' ? latest : null;
  if (!answered?.resolution || answered.resolution.finish || answered.question.kind === 'approval')
    return source.spec.prompt;
  return buildReplyPrompt(answered.resolution.response);
}

function isOwnWorkspace({ run_id: runId, spec }: RunRecord): boolean {
  return spec.cwd.includes(runId);
}
