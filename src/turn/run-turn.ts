// One turn of a run, from queued to wherever it ends: commit `running`, have it played, store what it came to.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildCommand, explainMismatch, findEngine } from '../engines/registry.js';
import type { Engine, EngineCommand } from '../engines/engine.js';
import { isDiskFull } from '../files/disk-full.js';
import { asObject } from '../kernel/json.js';
import { clip, redact } from '../kernel/redact.js';
import { draft } from '../rasp/draft.js';
import { NO_FACTS } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import { explainDirectory } from '../process/spawn.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { buildFirstPrompt, buildReplyPrompt } from '../run/turn-prompt.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied, type RunTransition } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { endFromLogs } from './end-from-logs.js';
import { explainInterruption, hasCrashedTwice } from './host-crashes.js';
import { loadRun } from '../journal/load-run.js';
import { playProcess } from './play-process.js';
import { playResident } from './play-resident.js';
import { explainFolder } from './prepare-turn.js';
import { explainResume } from './explain-resume.js';
import type { Residents } from './residents.js';
import { askFor, type TurnAsk } from './turn-ask.js';
import type { TurnControl } from './turn-control.js';
import { applied, fail, failStart } from './turn-scene.js';
import { TurnWriter } from './turn-writer.js';
import { writeResult } from './write-result.js';

// Answers the run as it is afterwards. Throws if the store is lost; the engine is gone by then.
export async function runTurn(
  deps: OrchestratorDeps,
  queued: RunRecord,
  control: TurnControl,
  residents: Residents,
): Promise<RunRecord> {
  if (hasCrashedTwice(queued)) return endCrashed(deps, queued);
  if (deps.marksStarts) await markStarting(deps, queued.run_id);
  const engine = findEngine(queued.spec.engine);
  const { answered, handle } = await readBasis(deps, queued);
  if (answered?.resolution?.finish) {
    await residents.end(queued.run_id);
    return finishConversation(deps, queued, answered);
  }
  const obstacle = await explainObstacle(engine, queued, handle, residents.has(queued.run_id));
  if (obstacle) {
    await residents.end(queued.run_id);
    return endBeforeStart(deps, queued, obstacle);
  }
  const release = (await deps.host.admit?.(engine)) ?? (() => {});
  try {
    return noteLogin(deps, engine, await startTurn(deps, engine, queued, { handle, answered, control, residents }));
  } finally {
    release();
  }
}

// Not even begun: what is begun a third time may crash its host a third time.
async function endCrashed(deps: OrchestratorDeps, queued: RunRecord): Promise<RunRecord> {
  const message = 'Parley stopped while the run was about to start.';
  const outcome = await applyRunEvent(deps, queued, {
    event: 'restart.reconcile_failed',
    facts: NO_FACTS,
    error: explainInterruption(queued, message),
  });
  return outcome.applied ? outcome.run : loadRun(deps.store, queued.run_id);
}

async function markStarting({ store }: OrchestratorDeps, runId: string): Promise<void> {
  await store.markStarting(runId).catch((cause: unknown) => {
    throw new NotBegunError('the start of the turn could not be stored', { cause });
  });
}

// The engine's own word on the login, for runs that are created later.
function noteLogin({ host }: OrchestratorDeps, engine: Engine, run: RunRecord): RunRecord {
  const isRefused = [run.error?.code, asObject(run.error?.details?.cause)?.code].includes('ENGINE_AUTH_REQUIRED');
  if (isRefused) host.noteLogin?.(engine, run.spec.model, false);
  else if (run.status === 'succeeded' || run.status === 'waiting_user') host.noteLogin?.(engine, run.spec.model, true);
  return run;
}

// What cannot be read now can be read later: nothing has begun.
async function readBasis(
  { store }: OrchestratorDeps,
  queued: RunRecord,
): Promise<Pick<TurnBasis, 'answered' | 'handle'>> {
  try {
    return {
      answered: queued.attempt_number > 1 ? await store.loadLatest(queued.run_id) : null,
      handle: await store.loadHandle(queued.request_id),
    };
  } catch (cause) {
    throw new NotBegunError('what the turn begins with could not be read', { cause });
  }
}

interface TurnBasis {
  readonly handle: EngineSessionHandle | null;
  readonly answered: InteractionRecord | null;
  readonly control: TurnControl;
  readonly residents: Residents;
}

async function startTurn(
  deps: OrchestratorDeps,
  engine: Engine,
  queued: RunRecord,
  { handle, answered, control, residents }: TurnBasis,
): Promise<RunRecord> {
  const program = await deps.host.findProgram(engine);
  const version = program === null ? undefined : deps.host.versionOf?.(engine, program);
  const doubts = handle === null && program !== null ? await explainResume(deps, engine, queued) : [];
  const ask = engine.asksByTool ? askFor(deps, queued) : null;
  const command = program === null ? null : build(deps, engine, queued, program, handle, answered, ask);
  // It stays queued.
  if (control.wantsShutdown) return queued;
  const argv = residents.has(queued.run_id) ? [] : (command?.argv ?? []).map(redact);
  const started = await begin(deps, queued, [
    draft('lifecycle.turn.started', { argv, resumed: handle !== null, engine_version: version, cwd: queued.spec.cwd }),
    ...doubts,
  ]);
  // Canceled in the last moment, or taken by another: nothing has begun.
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const running = started.run;
  // From here on it is ours: until now whoever cancels the run has ended it.
  const waiter = await residents.take(queued.run_id);
  const writer = new TurnWriter(deps, running, () => control.shutdown());
  if (program === null || command === null) {
    await waiter?.resident.close();
    const message = deps.host.explainMissing?.(engine) ?? `${engine.probe.binary} not found: ${engine.probe.install}`;
    return failStart({ deps, handle, writer }, { code: 'ENGINE_NOT_FOUND', message });
  }
  control.onAbandon(() => writer.flush());
  const scene = {
    deps,
    engine,
    options: parseRuntimeOptions(queued.spec.runtime_options),
    handle,
    answered,
    control,
    version,
    writer,
  };
  if (engine.resident)
    return playResident(scene, { command, program, waiter, residents, sticky: running.spec.sticky ?? false });
  return playProcess(scene, command, ask);
}

// Known before anything is started. An answer that could not reach the conversation it belongs to is never given to
// another.
async function explainObstacle(
  engine: Engine,
  { attempt_number: attempt, spec }: RunRecord,
  handle: EngineSessionHandle | null,
  isWaiting: boolean,
): Promise<RunError | null> {
  if (handle === null)
    return attempt > 1
      ? { code: 'SESSION_RESUME_FAILED', message: 'The run was answered, but its session is not stored any more.' }
      : null;
  if (handle.handle_type === 'process' && !isWaiting)
    return {
      code: 'INTERACTION_PROCESS_LOST',
      message: 'The process that waited for the answer is gone, and its session with it.',
    };
  const obstacle = await explainNoResume(engine, spec.cwd, handle);
  if (obstacle === null) return null;
  return {
    code: 'SESSION_RESUME_FAILED',
    message: `The session cannot be continued: ${obstacle.message}.`,
    details: { cause: { ...obstacle } },
  };
}

// A folder that is gone took the work of the session with it; a home that is gone took the session itself.
async function explainNoResume(
  engine: Engine,
  cwd: string,
  handle: EngineSessionHandle,
): Promise<{ readonly code?: string; readonly message: string } | null> {
  const mismatch = explainMismatch(engine, cwd, handle);
  if (mismatch !== null) return { code: 'HANDLE_MISMATCH', message: mismatch };
  const trouble = await explainFolder(cwd);
  if (trouble !== null) return { code: 'WORKING_FOLDER_UNUSABLE', message: `cannot work in ${cwd}: ${trouble}` };
  const home = handle.home === null ? null : await explainDirectory(handle.home);
  return home === null ? null : { message: `its home ${handle.home} cannot be used: ${home}` };
}

async function endBeforeStart(deps: OrchestratorDeps, queued: RunRecord, error: RunError): Promise<RunRecord> {
  const started = await begin(deps, queued);
  return started.applied ? fail(deps, started.run, error) : loadRun(deps.store, queued.run_id);
}

function build(
  deps: OrchestratorDeps,
  engine: Engine,
  run: RunRecord,
  program: readonly string[],
  handle: EngineSessionHandle | null,
  answered: InteractionRecord | null,
  ask: TurnAsk | null,
): EngineCommand {
  const { spec } = run;
  const prompt = answered?.resolution
    ? buildReplyPrompt(answered.resolution.response)
    : buildFirstPrompt(spec.execution_mode, spec.prompt);
  return buildCommand(
    engine,
    {
      program,
      cwd: spec.cwd,
      prompt,
      permission: spec.permission,
      newSessionId: deps.host.newSessionId(),
      hasFile: (path) => existsSync(resolve(spec.cwd, path)),
      ...(spec.model === undefined ? {} : { model: spec.model }),
      ...(ask ? { ask: ask.command } : {}),
    },
    handle,
    spec.fork_from?.session,
  );
}

// The store did not take the beginning of a turn: nothing has happened, and it can be tried again.
export class NotBegunError extends Error {
  override readonly name = 'NotBegunError';
}

// From here on the turn has an owner: what an older one writes is refused.
async function begin(deps: OrchestratorDeps, queued: RunRecord, before?: RunTransition['before']): Promise<Applied> {
  try {
    return await applyRunEvent(deps, queued, {
      event: 'turn.started',
      facts: NO_FACTS,
      set: { epoch: queued.epoch + 1 },
      ...(before ? { before } : {}),
    });
  } catch (cause) {
    throw new NotBegunError('the turn could not begin', { cause });
  }
}

// Fails a run whose turn could not be stored or run, so that it is not stuck: the disk was full, the machine refused
// something, or Parley has a defect. The output that is in the logs is stored with it.
export async function failInternally(deps: OrchestratorDeps, runId: string, reason: unknown): Promise<void> {
  const found = await deps.store.loadRun(runId);
  if (found?.status !== 'queued' && found?.status !== 'running') return;
  // Another host may begin it.
  if (found.status === 'queued' && deps.cluster) return;
  const running = found.status === 'running' ? found : applied(await begin(deps, found));
  const why = reason instanceof Error ? reason.message : String(reason);
  const error: RunError = isDiskFull(reason)
    ? {
        code: 'DISK_FULL',
        message: redact(
          clip(`The disk became full while this turn ran (${why}). Free some space, then: parley retry ${runId}`, 500),
        ),
      }
    : { code: 'INTERNAL', message: redact(clip(`The turn could not be played: ${why}`, 500)) };
  applied(await endFromLogs(deps, running, { event: 'turn.failed', error }));
}

// The person ended a conversation in which nothing was asked: no engine is needed for that.
async function finishConversation(
  deps: OrchestratorDeps,
  queued: RunRecord,
  answered: InteractionRecord,
): Promise<RunRecord> {
  const started = await begin(deps, queued);
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const { prompt } = answered.question;
  const result = typeof prompt === 'string' ? prompt : null;
  return applied(
    await applyRunEvent(deps, started.run, {
      event: 'turn.succeeded',
      facts: NO_FACTS,
      result,
      before: [await writeResult(deps.dataDir, queued.run_id, result)],
    }),
  );
}
