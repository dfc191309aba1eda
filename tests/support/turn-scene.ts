// What a turn needs to run in a test: a running run on the real store of a CommandBench, the context that `runTurn`
// would build, and engines that are small shell scripts. Deadlines are simulated, so a test decides when they are
// reached; shorter timers (grouped writes, the end of processes) are real.
import { mkdirSync } from 'node:fs';
import { replyToRun } from '../../src/commands/reply.js';
import { findEngine } from '../../src/engines/registry.js';
import type { EngineCommand } from '../../src/engines/engine.js';
import type { Json } from '../../src/kernel/json.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import type { RunRecord } from '../../src/store/store.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import type { TurnContext, TurnDeps } from '../../src/turn/turn-context.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { SESSION, type CommandBench } from './command-bench.js';
import { onlyLong, SimulatedTimers } from './simulated-timers.js';

// All of them are long enough to be simulated.
export const LIMITS = {
  turn_timeout_sec: 1000,
  idle_timeout_sec: 200,
  tool_timeout_sec: 300,
  silence_notice_sec: 60,
} as const;

// Real: it ends a process that should have been ended for another reason, so that such a test fails and does not hang.
export const SOON = { ...LIMITS, turn_timeout_sec: 20 } as const;

export interface TurnScene {
  readonly context: TurnContext;
  readonly control: TurnControl;
  // The deadlines of the turn.
  readonly limits: SimulatedTimers;
  readonly run: RunRecord;
}

export type SceneChanges = Partial<Omit<TurnContext, 'deps'>> & { readonly deps?: Partial<TurnDeps> };

export function sceneOf(bench: CommandBench, run: RunRecord, changes: SceneChanges = {}): TurnScene {
  const limits = new SimulatedTimers();
  const control = new TurnControl();
  const deps = { ...bench.deps, timers: onlyLong(limits), ...changes.deps };
  const writer = new TurnWriter(deps, run, () => control.shutdown());
  const context: TurnContext = {
    engine: findEngine(run.spec.engine),
    options: parseRuntimeOptions(LIMITS),
    handle: null,
    answered: null,
    control,
    version: undefined,
    writer,
    ...changes,
    deps,
  };
  return { context, control, limits, run };
}

export function handleOf({ spec: { engine, cwd, home } }: RunRecord, session = SESSION): EngineSessionHandle {
  return { engine, handle_type: 'session_id', handle_value: session, cwd, home, created_at_attempt: 1 };
}

// Starts a shell script instead of an engine.
export function shellCommand(script: string, cwd: string, changes: Partial<EngineCommand> = {}): EngineCommand {
  return { argv: ['/bin/sh', '-c', script], cwd, stdin: null, env: {}, ...changes };
}

// Prints each value as one line of JSON. The values may not contain a single quote.
export function print(...values: readonly object[]): string {
  return values.map((value) => `printf '%s\\n' '${JSON.stringify(value)}'`).join('\n');
}

// What `codex exec --json` prints.
export const codexSays = {
  session: (id: string = SESSION) => ({ type: 'thread.started', thread_id: id }),
  message: (text: string) => ({ type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text } }),
  tool: () => ({ type: 'item.started', item: { id: 'item_1', type: 'command_execution', command: 'npm test' } }),
  end: () => ({ type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 1 } }),
};

export const typesOf = (events: readonly RaspEvent[]): string[] => events.map(({ event }) => event.type);

export function dataOf(events: readonly RaspEvent[], type: string): RaspEvent['data'] | undefined {
  return events.find(({ event }) => event.type === type)?.data;
}

// Answers the open question of a run; its next turn is queued.
export async function reply(
  bench: CommandBench,
  { run_id: runId }: Pick<RunRecord, 'run_id'>,
  response: Json,
  { finish = false }: { readonly finish?: boolean } = {},
): Promise<RunRecord> {
  const pending = await bench.store.loadPendingInteraction(runId);
  const answer = { interaction_id: pending?.interaction_id ?? '', ...(finish ? { finish } : { response }) };
  const queued = await replyToRun(bench.deps, runId, { reply: answer, actor: null });
  for (const folder of [queued.spec.cwd, queued.spec.home]) if (folder !== null) mkdirSync(folder, { recursive: true });
  return queued;
}
