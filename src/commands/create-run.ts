// Accepts a new run: everything that can be known to be wrong is refused here, before anything is stored.
import { createHash } from 'node:crypto';
import { findEngine } from '../engines/registry.js';
import { canonicalText, type Json, type JsonObject } from '../kernel/json.js';
import { draft } from '../rasp/draft.js';
import { FIRST_ATTEMPT } from '../run/attempt.js';
import { RequestError } from '../run/request-error.js';
import { parseRuntimeOptions, toJson } from '../run/runtime-options.js';
import { actorKey } from './actor-key.js';
import { profileOf } from '../journal/run-view.js';
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

// Who wants it, and what it goes on with.
export interface Origin {
  readonly actor?: Actor | undefined;
  // Where the caller may let runs work; null: anywhere. Checked only for a request that is new.
  readonly roots?: readonly string[] | null;
  readonly continuation?: Continuation;
  // What it begins with a copy of.
  readonly fork?: Continuation;
  // Whose folder it works in.
  readonly beside?: RunRecord;
  // The interrupted run that it repeats by itself.
  readonly retryOf?: string;
}

export async function createRun(deps: OrchestratorDeps, request: CreateRunRequest, origin: Origin): Promise<RunRecord> {
  const { continuation, fork } = origin;
  checkRequest(request);
  const digest = digestOf(request, continuation, fork);
  const known = request.request_id === undefined ? null : await deps.store.loadRequest(request.request_id);
  // Before anything else is looked at: what was right then need not be right now.
  if (known) return sameRun(known.run, known.digest === digest);
  const isLocal = deps.cluster?.files === 'local' && request.cwd !== undefined && origin.beside === undefined;
  if (!request.force) await checkEngine(deps, { engine: findEngine(request.engine), model: request.model, isLocal });
  const outcome = await deps.store.createRun(await buildRun(deps, request, origin));
  if (outcome.created) return outcome.run;
  if (outcome.reason === 'queue_full')
    throw new RequestError(
      'QUEUE_FULL',
      `${outcome.queued} runs are queued already: try again when some of them have begun`,
    );
  if (outcome.reason === 'session_in_use')
    throw new RequestError(
      'SESSION_IN_USE',
      `run ${outcome.by} is at work in the session of run ${continuation?.run_id}: wait until it has ended`,
    );
  return sameRun(outcome.run, outcome.sameRequest);
}

// The run as it is stored, with its first event. Refuses what a run cannot be.
export async function buildRun(
  deps: OrchestratorDeps,
  request: CreateRunRequest,
  { actor, roots = null, continuation, fork, beside, retryOf }: Origin,
): Promise<NewRun> {
  const runId = deps.ids.run();
  const folder = runFolder(dataDirFor(deps, fork?.handle.home ?? beside?.spec.home), runId);
  const { permission = 'workspace-write' } = request;
  const options = parseRuntimeOptions(request.runtime_options as Json | undefined, deps.turnDefaults);
  const spec: RunSpec = {
    engine: findEngine(request.engine).name,
    execution_mode: request.execution_mode ?? 'auto',
    prompt: request.prompt,
    cwd:
      (continuation ?? fork)?.handle.cwd ??
      (request.cwd === undefined
        ? folder.workspace
        : await findFolder(deps, request.cwd, { roots, permission, beside })),
    home: continuation ? continuation.handle.home : folder.home,
    model: request.model,
    permission,
    output_schema: await checkSchema(request.output_schema, actor),
    runtime_options: toJson(options),
    labels: request.labels ?? {},
    continue_from: continuation?.run_id,
    fork_from: fork && { run_id: fork.run_id, session: fork.handle.handle_value, home: fork.handle.home ?? '' },
    ...(retryOf === undefined ? {} : { retry_of: retryOf }),
    ...stickyOf(deps, request),
  };
  const journal = new RunJournal({ runId, engine: spec.engine, attempt: FIRST_ATTEMPT }, EMPTY_JOURNAL, deps.clock);
  const requestId = request.request_id ?? runId;
  journal.add([draft('lifecycle.run.created', createdEvent(spec, requestId, actor))]);
  const flush = journal.take();
  invariant(flush, 'a new run has an event');
  return {
    run_id: runId,
    request_id: requestId,
    request_digest: digestOf(request, continuation, fork),
    spec,
    session_timeout_sec: options.session_timeout_sec,
    handle: continuation?.handle ?? null,
    // The time of its first event: a range of times that begins here includes it.
    created_at: flush.firstTs,
    local: request.cwd !== undefined,
    beside: (continuation ?? fork ?? beside)?.run_id,
    journal: flush,
    // Crashes of the hosts of the interrupted run count for its retry.
    crashes_of: retryOf,
    queue_limit: deps.queueLimit,
  };
}

function sameRun(run: RunRecord, sameRequest: boolean): RunRecord {
  if (!sameRequest)
    throw new RequestError(
      'REQUEST_ID_CONFLICT',
      `request id ${run.request_id} was used before with another body (run ${run.run_id})`,
    );
  return run;
}

// How it waits is told only where that may differ.
function createdEvent(
  { home: _home, sticky, fork_from: fork, ...spec }: RunSpec,
  requestId: string,
  actor: Actor | undefined,
) {
  const profile = sticky === undefined ? {} : { interactive_profile: profileOf(sticky) };
  return { ...spec, labels: { ...spec.labels }, fork_from: fork?.run_id, ...profile, request_id: requestId, actor };
}

// With those of the run that it needs, where hosts have directories of their own.
function dataDirFor({ cluster, dataDir }: OrchestratorDeps, home: string | null | undefined): string {
  return cluster && home ? dataDirOf(home) : dataDir;
}

// A folder of another host is looked at when the run begins there.
async function findFolder(
  { cluster, dataDir }: OrchestratorDeps,
  path: string,
  rules: Omit<FolderRules, 'dataDir'>,
): Promise<string> {
  const { beside } = rules;
  return cluster && beside && !(await cluster.hasFiles(beside.run_id))
    ? path
    : checkFolder(path, { ...rules, dataDir });
}

async function checkSchema(schema: JsonObject | undefined, actor: Actor | undefined): Promise<JsonObject | undefined> {
  const problem = schema === undefined ? null : await schemaChecks.explainSchema(schema, actor && actorKey(actor));
  if (problem !== null) throw new RequestError('INVALID_ARGUMENT', `output_schema cannot be used: ${problem}`);
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

// How the run will wait, where the profile is recorded (sessions.sticky): in its process (true), resumable (false). No
// kind is claimed where the engine fails its probe and cannot stay, or where nothing is known yet: the first turn then
// records a diagnostic. Creation never waits for a probe; an unknown engine is probed in the background.
function stickyOf(
  { host, sticky }: OrchestratorDeps,
  { engine: name, execution_mode: mode }: CreateRunRequest,
): Pick<RunSpec, 'sticky'> {
  if (mode !== 'interactive') return {};
  const engine = findEngine(name);
  const known = host.knownResume?.(engine) ?? null;
  if (known === null) host.probeResume?.(engine).catch(() => {});
  if (!sticky || known === null) return {};
  if (known.resumes) return { sticky: false };
  return engine.resident ? { sticky: true } : {};
}
