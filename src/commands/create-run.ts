// Creates a run. Refuses every request that is known to be invalid before anything is stored.
import { createHash } from 'node:crypto';
import { findEngine } from '../engines/registry.js';
import { canonicalText, type Json, type JsonObject } from '../kernel/json.js';
import { draft } from '../rasp/draft.js';
import { FIRST_ATTEMPT } from '../run/attempt.js';
import { RUN_FOLD_VERSION, startFold } from '../run/run-fold.js';
import { describeSession } from '../run/session-handle.js';
import { refusal } from '../run/request-error.js';
import { parseRuntimeOptions, toJson } from '../run/runtime-options.js';
import { chooseWaiting, recordedProfile, withoutWaiting, type WaitSpec } from '../run/waiting/wait-policy.js';
import { actorKey } from './actor-key.js';
import { EMPTY_JOURNAL, type Actor, type NewRun, type RunRecord, type RunSpec } from '../store/store.js';
import { invariant } from '../kernel/invariant.js';
import { checkEngine } from './check-engine.js';
import { checkFolder, type FolderRules } from './check-folder.js';
import { checkRequest, type CreateRunRequest } from './create-request.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { schemaChecks } from '../schema-check/schema-checks.js';
import { dataDirOf, runFolder } from '../journal/run-folder.js';
import { RunJournal } from '../journal/run-journal.js';
import type { Continuation } from '../turn/fork-source.js';

// Who creates the run, and which earlier run it builds on.
export interface Origin {
  readonly actor?: Actor | undefined;
  // The folders in which the caller may start runs; null: no restriction. Not checked when a known request is repeated.
  readonly roots?: readonly string[] | null;
  // The session that the run continues.
  readonly continuation?: Continuation | undefined;
  // The session that the run starts from a copy of.
  readonly fork?: Continuation;
  // The run whose folder the new run works in.
  readonly beside?: RunRecord;
  // The interrupted run that Parley repeats by itself.
  readonly retryOf?: string;
  // The request has the values of an earlier run, so the defaults of the settings do not apply: a conversation keeps
  // its model when the settings change.
  readonly isFollowUp?: boolean;
}

// The dependencies of run creation.
export type CreateDeps = Pick<
  OrchestratorDeps,
  | 'store'
  | 'clock'
  | 'ids'
  | 'dataDir'
  | 'runtime'
  | 'peers'
  | 'files'
  | 'queueLimit'
  | 'runDefaults'
  | 'mayNeedProcess'
>;

export async function createRun(deps: CreateDeps, request: CreateRunRequest, origin: Origin): Promise<RunRecord> {
  const { continuation, fork } = origin;
  checkRequest(request);
  const digest = digestOf(request, continuation, fork);
  const known = request.request_id === undefined ? null : await deps.store.loadRequest(request.request_id);
  // Checked first: repeating a request returns its run even if the request would be refused today.
  if (known) return sameRun(known.run, known.digest === digest);
  const isLocal = deps.files.layout === 'local' && request.cwd !== undefined && origin.beside === undefined;
  if (!request.force) {
    const { model } = withDefaults(deps, request, origin);
    await checkEngine(deps, { engine: findEngine(request.engine), model, isLocal });
  }
  const outcome = await deps.store.createRun(await buildRun(deps, request, origin));
  if (outcome.created) return outcome.run;
  if (outcome.reason === 'queue_full') throw refusal('QUEUE_FULL.runs', { queued: outcome.queued });
  if (outcome.reason === 'session_in_use')
    throw refusal('SESSION_IN_USE.session', { worker: outcome.by, run: continuation?.run_id ?? '' });
  return sameRun(outcome.run, outcome.sameRequest);
}

// Builds the row of the run and its first event. Refuses an invalid folder, schema or option.
export async function buildRun(deps: CreateDeps, request: CreateRunRequest, origin: Origin): Promise<NewRun> {
  const { actor, roots = null, continuation, fork, beside, retryOf } = origin;
  const effective = withDefaults(deps, request, origin);
  const runId = deps.ids.run();
  const folder = runFolder(dataDirFor(deps, fork?.handle.home ?? beside?.spec.home), runId);
  const { permission } = effective;
  const options = parseRuntimeOptions(request.runtime_options as Json | undefined, deps.runDefaults?.().limits);
  const spec: RunSpec = {
    engine: findEngine(request.engine).name,
    execution_mode: effective.execution_mode,
    prompt: request.prompt,
    cwd:
      (continuation ?? fork)?.handle.cwd ??
      (request.cwd === undefined
        ? folder.workspace
        : await findFolder(deps, request.cwd, { roots, permission, beside })),
    home: continuation ? continuation.handle.home : folder.home,
    model: effective.model,
    permission,
    output_schema: await checkSchema(request.output_schema, actor),
    runtime_options: toJson(options),
    labels: request.labels ?? {},
    continue_from: continuation?.run_id,
    fork_from: fork && { run_id: fork.run_id, session: fork.handle.handle_value, home: fork.handle.home ?? '' },
    ...(retryOf === undefined ? {} : { retry_of: retryOf }),
    ...waitingOf(deps, effective),
  };
  const owner = { runId, engine: spec.engine, attempt: FIRST_ATTEMPT };
  const journal = new RunJournal(owner, { heads: EMPTY_JOURNAL, state: startFold(spec.home) }, deps.clock);
  const requestId = request.request_id ?? runId;
  journal.add([draft('lifecycle.run.created', createdEvent(spec, requestId, { actor, continuation }))]);
  const drained = journal.drain();
  invariant(drained, 'a new run has an event');
  const { lines, after } = drained;
  return {
    run_id: runId,
    request_id: requestId,
    request_digest: digestOf(request, continuation, fork),
    spec,
    session_timeout_sec: after.request.session_timeout_sec,
    handle: after.session,
    // The time of the first event, so that a time range from created_at on includes it.
    created_at: lines.firstTs,
    local: request.cwd !== undefined,
    beside: (continuation ?? fork ?? beside)?.run_id,
    journal: lines,
    // The retry inherits the crash count of the interrupted run.
    crashes_of: retryOf,
    queue_limit: deps.queueLimit(),
  };
}

// Fills in the mode, the permission and the model. The digest of a request is made without them, so a repeated request
// returns its run even if the defaults changed since.
function withDefaults(
  { runDefaults }: Pick<CreateDeps, 'runDefaults'>,
  request: CreateRunRequest,
  { isFollowUp = false }: Origin,
): CreateRunRequest & Required<Pick<CreateRunRequest, 'execution_mode' | 'permission'>> {
  const defaults = isFollowUp ? undefined : runDefaults?.();
  const model = request.model ?? defaults?.model[findEngine(request.engine).name];
  return {
    ...request,
    execution_mode: request.execution_mode ?? defaults?.mode ?? 'auto',
    permission: request.permission ?? defaults?.permission ?? 'workspace-write',
    ...(model === undefined ? {} : { model }),
  };
}

function sameRun(run: RunRecord, sameRequest: boolean): RunRecord {
  if (!sameRequest) throw refusal('REQUEST_ID_CONFLICT', { request: run.request_id, run: run.run_id });
  return run;
}

// Records how the run waits only where runs may wait in different ways.
function createdEvent(
  { home: _home, fork_from: fork, ...spec }: RunSpec,
  requestId: string,
  { actor, continuation }: Pick<Origin, 'actor' | 'continuation'>,
) {
  const profile = recordedProfile(spec);
  const session = continuation && { session: describeSession(continuation.handle) };
  return {
    ...withoutWaiting(spec),
    labels: { ...spec.labels },
    fork_from: fork?.run_id,
    ...(profile && { interactive_profile: profile }),
    ...session,
    fold_version: RUN_FOLD_VERSION,
    request_id: requestId,
    actor,
  };
}

// The data directory that has the files of the earlier run. It may be on another host.
function dataDirFor(
  { files, dataDir }: Pick<CreateDeps, 'files' | 'dataDir'>,
  home: string | null | undefined,
): string {
  return files.layout !== 'single' && home ? dataDirOf(home) : dataDir;
}

// A folder on another host is checked when the run starts there.
async function findFolder(
  { files, dataDir }: Pick<CreateDeps, 'files' | 'dataDir'>,
  path: string,
  rules: Omit<FolderRules, 'dataDir'>,
): Promise<string> {
  const { beside } = rules;
  return beside && !(await files.isHere(beside.run_id)) ? path : checkFolder(path, { ...rules, dataDir });
}

async function checkSchema(schema: JsonObject | undefined, actor: Actor | undefined): Promise<JsonObject | undefined> {
  const problem = schema === undefined ? null : await schemaChecks.explainSchema(schema, actor && actorKey(actor));
  if (problem !== null) throw refusal('INVALID_ARGUMENT.output_schema', { problem });
  return schema;
}

function digestOf(
  request: CreateRunRequest,
  continuation: Continuation | undefined,
  fork: Continuation | undefined,
): string {
  const { request_id: _id, force: _force, ...body } = request;
  return createHash('sha256')
    .update(canonicalText({ ...body, continue_from: continuation?.run_id, fork_from: fork?.run_id }))
    .digest('hex');
}

// How the run will wait for an answer. Creation never waits for a probe: it only starts one in the background for an
// engine that was not probed yet, and the first turn then records a diagnostic.
function waitingOf(
  { runtime, mayNeedProcess = false }: Pick<CreateDeps, 'runtime' | 'mayNeedProcess'>,
  { engine: name, execution_mode: mode }: CreateRunRequest,
): WaitSpec {
  if (mode !== 'interactive') return {};
  const engine = findEngine(name);
  const known = runtime.knownResume?.(engine) ?? null;
  if (known === null) runtime.probeResume?.(engine).catch(() => {});
  return chooseWaiting({ mayNeedProcess, resumes: known?.resumes ?? null, canStay: engine.resident !== undefined });
}
