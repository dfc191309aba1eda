// One turn of a run, from queued to wherever it ends: commit `running`, start the engine, record what it prints, judge it.
import { writeFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { buildCommand, buildHandle, createTurnParser, explainMismatch, findEngine } from '../engines/registry.js';
import type { Engine, EngineCommand } from '../engines/engine.js';
import type { RunErrorCode } from '../contract/error-codes.js';
import { parseJson, type Json } from '../kernel/json.js';
import { clip, redact } from '../kernel/redact.js';
import { compileSchema } from '../kernel/validator.js';
import { startChild, type Child, type ChildEnd } from '../process/child.js';
import { LeftBehindError } from '../process/left-behind-error.js';
import { explainDirectory, type Refusal } from '../process/spawn.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import type { OutputCheck, RunError } from '../run/judge-completion.js';
import { parseRuntimeOptions, type RuntimeOptions } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import { buildFirstPrompt, buildReplyPrompt } from '../run/turn-prompt.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied, type RunTransition } from './apply-run-event.js';
import { concludeTurn } from './conclude-turn.js';
import type { OrchestratorDeps } from './deps.js';
import { endFromLogs } from './end-from-logs.js';
import { loadRun } from './load-run.js';
import { summariseParser } from './parser-summary.js';
import { makeFolder, runFolder } from './run-folder.js';
import { isSessionThere } from './session-there.js';
import { askFor, hearAsks, type TurnAsk } from './turn-ask.js';
import type { TurnControl } from './turn-control.js';
import { LostRunError, TurnWriter } from './turn-writer.js';
import { writeResult } from './write-result.js';

const GRACE_MS = 3000;

// Answers the run as it is afterwards. Throws if the store is lost; the engine is gone by then.
export async function runTurn(deps: OrchestratorDeps, queued: RunRecord, control: TurnControl): Promise<RunRecord> {
  const engine = findEngine(queued.spec.engine);
  const options = parseRuntimeOptions(queued.spec.runtime_options);
  const answered = queued.attempt_number > 1 ? await deps.store.loadLatest(queued.run_id) : null;
  const handle = await deps.store.loadHandle(queued.request_id);
  if (answered?.resolution?.finish) return finishConversation(deps, queued, answered);

  // An answer that could not reach the conversation it belongs to is never given to another.
  if (queued.attempt_number > 1 && handle === null) return endBeforeStart(deps, queued, { code: 'SESSION_RESUME_FAILED', message: 'The run was answered, but its session is not stored any more.' });
  const obstacle = handle === null ? null : await explainNoResume(engine, queued.spec.cwd, handle);
  if (obstacle !== null) return endBeforeStart(deps, queued, { code: 'SESSION_RESUME_FAILED', message: `The session cannot be continued: ${obstacle}.` });

  const release = (await deps.host.admit?.(engine)) ?? (() => {});
  try {
    return await startTurn(deps, engine, queued, { options, handle, answered, control });
  } finally {
    release();
  }
}

interface TurnBasis {
  readonly options: RuntimeOptions;
  readonly handle: EngineSessionHandle | null;
  readonly answered: InteractionRecord | null;
  readonly control: TurnControl;
}

async function startTurn(deps: OrchestratorDeps, engine: Engine, queued: RunRecord, { options, handle, answered, control }: TurnBasis): Promise<RunRecord> {
  const program = await deps.host.findProgram(engine);
  const version = program === null ? undefined : deps.host.versionOf?.(engine, program);
  const ask = askFor(deps, queued);
  const command = program === null ? null : build(deps, engine, queued, program, handle, answered, ask);
  // It stays queued.
  if (control.wantsShutdown) return queued;
  const started = await begin(deps, queued, [draft('lifecycle.turn.started', { argv: (command?.argv ?? []).map(redact), resumed: handle !== null, engine_version: version, cwd: queued.spec.cwd })]);
  // Canceled in the last moment, or taken by another: nothing has begun.
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const running = started.run;
  if (command === null) return fail(deps, running, { code: 'ENGINE_NOT_FOUND', message: deps.host.explainMissing?.(engine) ?? `${engine.probe.binary} not found: ${engine.probe.install}` });
  return new Turn(deps, engine, running, options, handle, control, ask, version).play(command);
}

// Known before anything is started. A folder that is gone took the work of the session with it.
async function explainNoResume(engine: Engine, cwd: string, handle: EngineSessionHandle): Promise<string | null> {
  const mismatch = explainMismatch(engine, cwd, handle);
  if (mismatch !== null) return mismatch;
  const trouble = await explainFolder(cwd);
  return trouble === null ? null : `cannot work in ${cwd}: ${trouble}`;
}

// It was stored as the folder itself: if it leads elsewhere now, it is another.
async function explainFolder(cwd: string): Promise<string | null> {
  const trouble = await explainDirectory(cwd);
  if (trouble !== null) return trouble;
  const real = await realpath(cwd);
  return real === cwd ? null : `it leads to ${real} now`;
}

async function endBeforeStart(deps: OrchestratorDeps, queued: RunRecord, error: RunError): Promise<RunRecord> {
  const started = await begin(deps, queued);
  return started.applied ? fail(deps, started.run, error) : loadRun(deps.store, queued.run_id);
}

function build(deps: OrchestratorDeps, engine: Engine, run: RunRecord, program: readonly string[], handle: EngineSessionHandle | null, answered: InteractionRecord | null, ask: TurnAsk | null): EngineCommand {
  const { spec } = run;
  const prompt = answered?.resolution ? buildReplyPrompt(answered.resolution.response) : buildFirstPrompt(spec.execution_mode, spec.prompt);
  return buildCommand(engine, { program, cwd: spec.cwd, prompt, permission: spec.permission, newSessionId: deps.host.newSessionId(), ...(spec.model === undefined ? {} : { model: spec.model }), ...(ask ? { ask: ask.command } : {}) }, handle);
}

class Turn {
  readonly #deps: OrchestratorDeps;
  readonly #engine: Engine;
  readonly #options: RuntimeOptions;
  // The session it continues; null in a first turn.
  readonly #handle: EngineSessionHandle | null;
  readonly #control: TurnControl;
  readonly #ask: TurnAsk | null;
  readonly #version: string | undefined;
  readonly #writer: TurnWriter;

  constructor(deps: OrchestratorDeps, engine: Engine, run: RunRecord, options: RuntimeOptions, handle: EngineSessionHandle | null, control: TurnControl, ask: TurnAsk | null, version: string | undefined) {
    this.#ask = ask;
    this.#version = version;
    this.#deps = deps;
    this.#engine = engine;
    this.#options = options;
    this.#handle = handle;
    this.#control = control;
    this.#writer = new TurnWriter(deps, run, () => control.shutdown());
  }

  async play(command: EngineCommand): Promise<RunRecord> {
    const { run } = this.#writer;
    const folder = runFolder(this.#deps.dataDir, run.run_id);
    const attempt = folder.attempt(run.attempt_number);
    makeFolder(attempt.path);
    // Not when the run is created: a crash right after that would leave a queued run without it.
    if (this.#handle === null && run.spec.cwd === folder.workspace) makeFolder(folder.workspace);
    if (run.spec.home !== null) makeFolder(run.spec.home);
    // A session's folder was looked at before; another is never taken for it.
    const trouble = this.#handle === null ? await explainFolder(run.spec.cwd) : null;
    if (trouble !== null) return fail(this.#deps, run, { code: 'WORKING_FOLDER_UNUSABLE', message: `cannot work in ${run.spec.cwd}: ${trouble}` });
    const parser = createTurnParser(this.#engine, this.#version);
    const prepared = this.#prepare();
    if ('refused' in prepared) return fail(this.#deps, run, prepared.refused);
    const env = { ...prepared.env, ...command.env };
    writeCommand(attempt.path, command, env);
    const result = await startChild(
      {
        argv: command.argv,
        cwd: command.cwd,
        env,
        stdin: command.stdin,
        logs: attempt.logs,
        mark: `${run.run_id}/${run.attempt_number}`,
        turnTimeoutMs: this.#options.turn_timeout_sec * 1000,
        idleTimeoutMs: this.#options.idle_timeout_sec * 1000,
        graceMs: GRACE_MS,
      },
      {
        onChunk: (stream, chunk) => {
          const stored = this.#writer.add(parser.push(stream, chunk));
          if (parser.runaway) this.#control.stopRunaway();
          if (this.#isElsewhere(parser.boundSession)) this.#control.stopOtherSession();
          return stored;
        },
      },
      this.#deps.timers,
    );
    if (!result.started) return fail(this.#deps, run, { code: this.#refusalCode(result.reason), message: result.message });
    const { child } = result;
    this.#control.attach(child);
    void this.#writer.add([draft('lifecycle.process.spawned', { pid: child.pid, start_time: child.startTime })]);
    const { end, left } = await endOf(child);
    if (left) void this.#writer.add([left]);
    void this.#writer.add(parser.finish());
    await this.#writer.flush();
    const { evidence, remarks } = hearAsks(this.#engine, this.#ask, parser.evidence());
    return this.#conclude(command, end, evidence, remarks, summariseParser(parser.counts()));
  }

  #prepare(): { readonly env: Readonly<Record<string, string>> } | { readonly refused: RunError } {
    try {
      return { env: this.#deps.host.environment(this.#engine, this.#writer.run, { ask: this.#ask?.command ?? null, resumed: this.#handle }) };
    } catch (error) {
      if (!(error instanceof TurnRefusedError)) throw error;
      return { refused: { code: error.code, message: error.message } };
    }
  }

  #refusalCode(reason: Refusal['reason']): RunErrorCode {
    switch (reason) {
      case 'bad_cwd':
        return this.#handle === null ? 'WORKING_FOLDER_UNUSABLE' : 'SESSION_RESUME_FAILED';
      case 'not_found':
      case 'not_executable':
        return 'ENGINE_NOT_FOUND';
      case 'other':
        return 'INTERNAL';
    }
  }

  // What it does there belongs to no conversation of ours: it must not even begin.
  #isElsewhere(session: string | null): boolean {
    return this.#handle !== null && session !== null && session !== this.#handle.handle_value;
  }

  async #conclude(command: EngineCommand, end: ChildEnd, evidence: TurnEvidence, remarks: readonly RaspDraft[], parser: ReturnType<typeof summariseParser>): Promise<RunRecord> {
    const { run } = this.#writer;
    const found = evidence.sessionId === null ? null : (this.#handle ?? buildHandle(this.#engine, evidence.sessionId, { cwd: run.spec.cwd, home: run.spec.home, attempt: run.attempt_number }));
    const handleChecked = found !== null && (await isSessionThere(this.#deps, found));
    const now = Math.max(this.#deps.clock.now(), run.heads.ts);
    const interactionId = this.#deps.ids.interaction();
    const conclusion = concludeTurn({
      facts: {
        mode: run.spec.execution_mode,
        attempt: run.attempt_number,
        maxAttempt: this.#options.max_attempt,
        evidence,
        exit: end.exit,
        endedByUs: end.endedByUs,
        resumedFrom: this.#handle?.handle_value ?? null,
        handleChecked,
        output: checkOutput(run, evidence),
      },
      now,
      interactionId,
      canceledBy: this.#control.canceledBy,
      streams: end.streams,
      parser,
      digest: run.heads.digest,
      remarks: [...remarks, ...crossCheck(command, evidence)],
    });
    const { question, transition: { before = [], result } } = conclusion;
    const transition: RunTransition = {
      ...conclusion.transition,
      before: result === undefined ? before : [...before, writeResult(this.#deps.dataDir, run.run_id, result)],
      // A first turn's session is kept however it ended, so that it can be continued; a later turn never replaces it.
      handle: this.#handle === null && handleChecked && found ? found : undefined,
      ask: question
        ? {
            interaction_id: interactionId,
            attempt_number: run.attempt_number,
            question: JSON.parse(JSON.stringify(question)) as { [key: string]: Json },
            asked_at: now,
            due_at: now + this.#options.session_timeout_sec * 1000,
            decides: !this.#options.interactive_require_user_reply,
          }
        : undefined,
    };
    return applied(await applyRunEvent(this.#deps, run, transition, this.#writer.journal));
  }
}

// What was started, for people; of the environment only the names.
function writeCommand(folder: string, { argv, cwd, stdin }: EngineCommand, env: Readonly<Record<string, string>>): void {
  const told = { argv: argv.map(redact), cwd, stdin_bytes: stdin === null ? null : Buffer.byteLength(stdin), env: Object.keys(env).toSorted() };
  writeFileSync(join(folder, 'command.json'), `${JSON.stringify(told, null, 2)}\n`, { mode: 0o600 });
}

// A process that something of it outlived has ended all the same; that is told.
async function endOf(child: Child): Promise<{ end: ChildEnd; left: RaspDraft | null }> {
  try {
    return { end: await child.done, left: null };
  } catch (error) {
    if (!(error instanceof LeftBehindError) || error.end === null) throw error;
    return { end: error.end, left: draft('diagnostic.engine.warning', { message: error.message }) };
  }
}

// The id we chose is never the handle; but if the output names another, something is wrong with one of them.
function crossCheck({ chosenSession }: EngineCommand, { sessionId }: TurnEvidence): RaspDraft[] {
  if (chosenSession === undefined || sessionId === null || chosenSession === sessionId) return [];
  return [draft('diagnostic.parser.warning', { code: 'SESSION_ID_CHANGED', message: `the session was to have the id ${chosenSession}, but the output names ${sessionId}` }, { sessionId })];
}

// The result that the agent gave, or its last message, against the schema that was asked for.
function checkOutput(run: RunRecord, evidence: TurnEvidence): OutputCheck {
  if (run.spec.output_schema === undefined) return { kind: 'not_asked' };
  const schema = compileSchema(run.spec.output_schema);
  const value = evidence.done ? evidence.done.result : parseJson(evidence.lastMessage ?? '');
  if (value === undefined) return { kind: 'invalid', problems: 'the last message is not JSON' };
  const problems = schema.ok ? schema.explain(value) : schema.problem;
  return problems === null ? { kind: 'valid', value } : { kind: 'invalid', problems };
}

// The store did not take the beginning of a turn: nothing has happened, and it can be tried again.
export class NotBegunError extends Error {
  override readonly name = 'NotBegunError';
}

// From here on the turn has an owner: what an older one writes is refused.
async function begin(deps: OrchestratorDeps, queued: RunRecord, before?: RunTransition['before']): Promise<Applied> {
  try {
    return await applyRunEvent(deps, queued, { event: 'turn.started', facts: NO_FACTS, set: { epoch: queued.epoch + 1 }, ...(before ? { before } : {}) });
  } catch (cause) {
    throw new NotBegunError('the turn could not begin', { cause });
  }
}

async function fail(deps: OrchestratorDeps, run: RunRecord, error: RunError): Promise<RunRecord> {
  return applied(await applyRunEvent(deps, run, { event: 'turn.failed', facts: NO_FACTS, error }));
}

// A defect of ours, or something that the machine refused: the run is told about it, so that it is not stuck. What its engine
// printed is in the logs, and is stored with it.
export async function failInternally(deps: OrchestratorDeps, runId: string, reason: unknown): Promise<void> {
  const found = await deps.store.loadRun(runId);
  if (found?.status !== 'queued' && found?.status !== 'running') return;
  const running = found.status === 'running' ? found : applied(await begin(deps, found));
  const error: RunError = { code: 'INTERNAL', message: redact(clip(`The turn could not be played: ${reason instanceof Error ? reason.message : String(reason)}`, 500)) };
  applied(await endFromLogs(deps, running, { event: 'turn.failed', error }));
}

// The person ended a conversation in which nothing was asked: no engine is needed for that.
async function finishConversation(deps: OrchestratorDeps, queued: RunRecord, answered: InteractionRecord): Promise<RunRecord> {
  const started = await begin(deps, queued);
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const { prompt } = answered.question;
  const result = typeof prompt === 'string' ? prompt : null;
  return applied(await applyRunEvent(deps, started.run, { event: 'turn.succeeded', facts: NO_FACTS, result, before: [writeResult(deps.dataDir, queued.run_id, result)] }));
}

function applied(outcome: Applied): RunRecord {
  if (outcome.applied) return outcome.run;
  throw new LostRunError('conflict' in outcome ? `the run was changed by somebody else (${outcome.conflict})` : `${outcome.refusal.event} is not possible in ${outcome.refusal.state}`);
}
