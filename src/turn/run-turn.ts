// One turn of a run, from queued to its end: commit `running`, run the engine, commit the outcome.
import { formOf } from '../messages/forms.js';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildCommand, findEngine } from '../engines/registry.js';
import type { Engine, EngineCommand } from '../engines/engine.js';
import { asObject } from '../kernel/json.js';
import { redact } from '../kernel/redact.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import { runError } from '../run/run-error.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { buildFirstPrompt, buildReplyPrompt } from '../run/turn-prompt.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { runFolder } from '../journal/run-folder.js';
import { loadRun } from '../journal/load-run.js';
import type { Instructions } from '../machine/engine-runtime.js';
import { beginTurn, endCrashed, failBeforeStart, finishConversation, NotBegunError } from './begin-turn.js';
import { explainObstacle } from './explain-obstacle.js';
import { explainResume } from './explain-resume.js';
import { hasCrashedTwice } from './host-crashes.js';
import { runProcessTurn } from './process-turn.js';
import { runResidentTurn } from './residents/resident-turn.js';
import type { Residents } from './residents/residents.js';
import { askFor, type TurnAsk } from './turn-ask.js';
import type { TurnControl } from './turn-control.js';
import { ToolGate } from './tool-gate.js';
import { failStart, type TurnDeps } from './turn-context.js';
import { TurnWriter } from './turn-writer.js';

// What a turn starts with.
interface TurnStart {
  readonly deps: TurnDeps;
  readonly queued: RunRecord;
  readonly control: TurnControl;
  readonly residents: Residents;
}

interface LoadedTurn extends TurnStart {
  readonly engine: Engine;
  // The session it continues; null in a first turn.
  readonly handle: EngineSessionHandle | null;
  // The answered question, in a later turn.
  readonly answered: InteractionRecord | null;
  readonly gate: ToolGate | null;
}

// Returns the run after the turn. Throws if the store is lost; the engine has ended by then.
export async function runTurn(start: TurnStart & { readonly marksStarts: boolean }): Promise<RunRecord> {
  const { deps, queued, residents } = start;
  if (hasCrashedTwice(queued)) return endCrashed(deps, queued);
  if (start.marksStarts) await markStarting(deps, queued.run_id);
  const engine = findEngine(queued.spec.engine);
  const loaded = await loadBasis(deps, queued);
  const { answered, handle } = loaded;
  if (answered?.resolution?.finish) {
    await residents.end(queued.run_id);
    return finishConversation(deps, queued, answered);
  }
  const hasProcess = residents.has(queued.run_id);
  const obstacle = await explainObstacle({ engine, run: queued, handle, hasProcess });
  if (obstacle) {
    await residents.end(queued.run_id);
    return failBeforeStart(deps, queued, obstacle);
  }
  const release = (await deps.runtime.admit?.(engine)) ?? (() => {});
  let gate: ToolGate | null = null;
  try {
    gate = await openGate(deps, engine, queued);
    return noteLogin(deps, engine, await startTurn({ ...start, ...loaded, engine, gate }));
  } finally {
    await gate?.close();
    release();
  }
}

// Only a run with a person gets one: without it, the engine denies what it would ask about.
async function openGate({ runtime }: TurnDeps, { gate }: Engine, { spec }: RunRecord): Promise<ToolGate | null> {
  if (!gate || spec.execution_mode !== 'interactive' || spec.permission === 'full') return null;
  return ToolGate.open(gate, spec.permission, runtime.newSessionId());
}

async function markStarting({ store }: Pick<OrchestratorDeps, 'store'>, runId: string): Promise<void> {
  await store.markStarting(runId).catch((cause: unknown) => {
    throw new NotBegunError('the start of the turn could not be stored', { cause });
  });
}

// Nothing has started yet, so a failed read only postpones the turn.
async function loadBasis(
  { store }: Pick<OrchestratorDeps, 'store'>,
  queued: RunRecord,
): Promise<Pick<LoadedTurn, 'answered' | 'handle'>> {
  try {
    return {
      answered: queued.attempt_number > 1 ? await store.loadLatestInteraction(queued.run_id) : null,
      handle: await store.loadHandle(queued.request_id),
    };
  } catch (cause) {
    throw new NotBegunError('the session and answer of the turn could not be read', { cause });
  }
}

// Remembers whether the engine accepted its login, for runs that are created later.
function noteLogin({ runtime }: Pick<OrchestratorDeps, 'runtime'>, engine: Engine, run: RunRecord): RunRecord {
  const isRefused = [run.error?.code, asObject(run.error?.details?.cause)?.code].includes('ENGINE_AUTH_REQUIRED');
  if (isRefused) runtime.noteLogin?.(engine, run.spec.model, false);
  else if (run.status === 'succeeded' || run.status === 'waiting_user')
    runtime.noteLogin?.(engine, run.spec.model, true);
  return run;
}

async function startTurn(turn: LoadedTurn): Promise<RunRecord> {
  const { deps, engine, queued, handle, answered, control, residents, gate } = turn;
  const program = await deps.runtime.findProgram(engine);
  const version = program === null ? undefined : deps.runtime.versionOf?.(engine, program);
  const doubts = handle === null && program !== null ? await explainResume(deps, engine, queued) : [];
  const ask = engine.asksByTool ? askFor(deps, queued) : null;
  const instructions = (await deps.runtime.readInstructions?.(engine, queued)) ?? null;
  const command =
    program === null ? null : buildTurnCommand(turn, program, { ask, instructions: textOf(instructions) });
  // It stays queued.
  if (control.wantsShutdown) return queued;
  const argv = residents.has(queued.run_id) ? [] : (command?.argv ?? []).map(redact);
  const started = await beginTurn(deps, queued, [
    draft('lifecycle.turn.started', { argv, resumed: handle !== null, engine_version: version, cwd: queued.spec.cwd }),
    ...doubts,
    ...explainInstructions(instructions),
  ]);
  // The run was canceled just now, or another host has it: nothing has started.
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  // Until here a cancel would have ended the waiting process; from here on this turn owns it.
  const idleResident = await residents.claim(queued.run_id);
  const writer = new TurnWriter(deps, started.run, () => control.shutdown());
  control.attachWriter(writer);
  if (program === null || command === null) {
    await idleResident?.resident.close();
    const { binary, install } = engine.probe;
    const error =
      deps.runtime.explainMissing?.(engine) ??
      runError('ENGINE_NOT_FOUND.not_installed', { program: binary, install: formOf(install) });
    return failStart({ deps, handle, writer }, error);
  }
  const options = parseRuntimeOptions(queued.spec.runtime_options);
  const context = { deps, engine, options, handle, answered, control, version, writer };
  if (engine.resident) return runResidentTurn(context, { command, program, idleResident, residents });
  gate?.attach(context);
  return runProcessTurn(context, command, ask, gate);
}

function buildTurnCommand(
  { deps, engine, queued: { run_id: runId, attempt_number: attempt, spec }, handle, answered, gate }: LoadedTurn,
  program: readonly string[],
  { ask, instructions }: { readonly ask: TurnAsk | null; readonly instructions: string | null },
): EngineCommand {
  const prompt = answered?.resolution
    ? buildReplyPrompt(answered.resolution.response)
    : buildFirstPrompt(spec.execution_mode, spec.prompt);
  const turn = {
    program,
    cwd: spec.cwd,
    prompt,
    permission: spec.permission,
    newSessionId: deps.runtime.newSessionId(),
    hasFile: (path: string) => existsSync(resolve(spec.cwd, path)),
    ...(spec.model === undefined ? {} : { model: spec.model }),
    ...(ask ? { ask: ask.command } : {}),
    ...(gate ? { gate: { url: gate.url, token: gate.token } } : {}),
    ...(engine.gate && answered?.question.kind === 'approval' ? { resumesCall: true } : {}),
    ...(instructions === null
      ? {}
      : {
          instructions: {
            path: join(runFolder(deps.dataDir, runId).attempt(attempt).path, 'instructions.md'),
            text: instructions,
          },
        }),
  };
  return buildCommand(engine, turn, handle, spec.fork_from?.session);
}

function textOf(instructions: Instructions | null): string | null {
  return instructions !== null && 'text' in instructions ? instructions.text : null;
}

function explainInstructions(instructions: Instructions | null): RaspDraft[] {
  if (instructions === null || 'text' in instructions) return [];
  return [
    draft('diagnostic.engine.warning', {
      message: `the agent does not get the instructions of the workspace: ${instructions.problem}`,
    }),
  ];
}
