// The parts of a resident turn on their own: decisions of people, deadlines, and the end of a run without a process.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { findEngine } from '../../src/engines/registry.js';
import type { TurnParser } from '../../src/engines/turn-parser.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { buildApproval, parseQuestion, type Question } from '../../src/run/interaction.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { Decisions } from '../../src/turn/residents/decisions.js';
import { endsAtDeadline, failWaiting, PROCESS_LOST } from '../../src/turn/residents/lost-process.js';
import { TurnClocks } from '../../src/turn/residents/turn-clocks.js';
import type { TurnContext } from '../../src/turn/turn-context.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, T0, type Waiting } from '../support/command-bench.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const ANN = { kind: 'token', name: 'ann' } as const;
const engine = findEngine('codex-app-server');

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

async function resident({ sticky = false, options = {} }: { sticky?: boolean; options?: JsonObject } = {}) {
  bench.stub.resume = { resumes: !sticky, problem: null };
  const deps = { ...bench.deps, mayNeedProcess: true };
  const request = {
    engine: engine.name,
    prompt: 'Go.',
    execution_mode: 'interactive',
    runtime_options: options,
  } as const;
  return bench.apply(await createRun(deps, request, {}), { event: 'turn.started' });
}

function decisionsOf(run: RunRecord, answered: InteractionRecord | null, engineName = engine.name): Decisions {
  const writer = new TurnWriter(bench.deps, run, () => {});
  return new Decisions({
    deps: bench.deps,
    engine: findEngine(engineName),
    answered,
    writer,
  } as unknown as TurnContext);
}

const appliedIn = async ({ run_id: runId }: RunRecord) =>
  (await bench.eventsOf(runId)).filter(({ event }) => event.type === 'interaction.approval.applied');

describe('the decisions of a turn', () => {
  const ACTION = { kind: 'command', command: 'npm test', cwd: '/work' };
  const approval = (action: JsonObject = ACTION): Question => buildApproval('Run this?', action);
  const digestOf = (run: RunRecord, action: JsonObject = ACTION): string =>
    engine.resident?.digest(action, run.spec.permission) ?? '';

  const answeredWith = (run: RunRecord, decision: string, question: JsonObject = {}): InteractionRecord =>
    ({
      interaction_id: 'int_1',
      question: { kind: 'approval', action: ACTION, digest: digestOf(run), ...question },
      resolution: { at: T0, response: { decision }, actor: ANN, idempotency_key: null, finish: false },
    }) as unknown as InteractionRecord;

  test('start with the decision about an approval, and with none about other questions', async () => {
    const run = await resident();
    expect(decisionsOf(run, answeredWith(run, 'decline')).decision).toBe('decline');
    expect(decisionsOf(run, answeredWith(run, 'decline', { kind: 'open_text' })).decision).toBeNull();
    expect(decisionsOf(run, null).decision).toBeNull();
  });

  test('are used once, for the same action, and stored before they are sent', async () => {
    const run = await resident();
    const decisions = decisionsOf(run, answeredWith(run, 'approve'));
    decisions.store();
    expect(await decisions.consume(approval({ ...ACTION, command: 'rm -rf /' }))).toBeNull();
    expect(await decisions.consume({ ...parseQuestion('Which?', 'native'), action: ACTION })).toBeNull();
    expect(await decisions.consume(approval())).toMatchObject({ response: { decision: 'approve' } });
    const [event, ...more] = await appliedIn(run);
    expect(event).toMatchObject({
      data: { interaction_id: 'int_1', decision: 'approve', digest: digestOf(run), actor: ANN },
      correlation: { interaction_id: 'int_1' },
    });
    expect(more).toEqual([]);
    expect(await decisions.consume(approval())).toBeNull();
    expect(decisions.stopped).toBe(false);
  });

  test('are not kept without being stored for this turn', async () => {
    const run = await resident();
    expect(await decisionsOf(run, answeredWith(run, 'approve')).consume(approval())).toBeNull();
  });

  test.each([
    ['no approval', { kind: 'open_text' }],
    ['without a digest', { digest: null }],
    ['without an action', { action: null }],
    ['about an action that may not be carried over', { action: { kind: 'unknown' } }],
  ] as [string, JsonObject][])('are not kept: %s', async (_why, question) => {
    const run = await resident();
    const decisions = decisionsOf(run, answeredWith(run, 'approve', question));
    decisions.store();
    expect(await decisions.consume(approval())).toBeNull();
  });

  test('are not used for an action that may not be carried over', async () => {
    const run = await resident();
    const odd = { kind: 'unknown' };
    const decisions = decisionsOf(run, answeredWith(run, 'approve', { digest: digestOf(run, odd) }));
    decisions.store();
    expect(await decisions.consume(approval(odd))).toBeNull();
  });

  test('stop the turn if the person says so', async () => {
    const run = await resident();
    const decisions = decisionsOf(run, answeredWith(run, 'cancel'));
    decisions.store();
    await decisions.consume(approval());
    expect(decisions.stopped).toBe(true);
    const other = decisionsOf(run, null);
    expect(other.stopped).toBe(false);
    other.stop();
    expect(other.stopped).toBe(true);
  });

  test('are stored with the time of the newest event if the clock was set back', async () => {
    bench.clock.at = T0 + 5000;
    const run = await resident();
    bench.clock.at = T0;
    const answered = answeredWith(run, 'approve');
    await decisionsOf(run, answered).apply(approval(), { ...answered.resolution, actor: null } as never);
    const [event] = await appliedIn(run);
    expect(event?.data).toMatchObject({ applied_at: toTimestamp(T0 + 5000) });
    expect(event?.data.actor).toBeUndefined();
  });

  test('need an answer, and an engine that can ask for approval', async () => {
    const run = await resident();
    const { resolution } = answeredWith(run, 'approve');
    await expect(decisionsOf(run, null).apply(approval(), resolution as never)).rejects.toThrow('a person has decided');
    expect(() => decisionsOf(run, null, 'codex').digestOf(approval())).toThrow('only a resident engine');
    expect(decisionsOf(run, null).digestOf({ ...approval(), action: undefined })).toBe(digestOf(run, {}));
  });
});

const stick = async (options: JsonObject = {}): Promise<Waiting> => {
  const run = await resident({ sticky: true, options });
  expect(run.spec.sticky).toBe(true);
  return bench.ask(run);
};

describe('a waiting run whose process is lost', () => {
  test('fails with the question that nobody answered', async () => {
    const { run, question } = await stick();
    expect(await failWaiting(bench.deps, run.run_id, question.interaction_id, PROCESS_LOST)).toBe(true);
    expect(await bench.store.loadRun(run.run_id)).toMatchObject({
      status: 'failed',
      error: { ...PROCESS_LOST, details: { unanswered: { prompt: 'Which name?' } } },
    });
  });

  test('does not change if it waits for another answer, is unknown or does not wait', async () => {
    const { run, question } = await stick();
    expect(await failWaiting(bench.deps, run.run_id, 'int_other', PROCESS_LOST)).toBe(false);
    expect(await failWaiting(bench.deps, 'run_unknown', question.interaction_id, PROCESS_LOST)).toBe(false);
    const store = alterStore(bench.store, { loadRun: async () => ({ ...run, status: 'queued' }) });
    expect(await failWaiting({ ...bench.deps, store }, run.run_id, question.interaction_id, PROCESS_LOST)).toBe(false);
    expect(await bench.store.loadRun(run.run_id)).toEqual(run);
  });

  test('does not change if it needs no process', async () => {
    const { run, question } = await bench.waiting();
    expect(await failWaiting(bench.deps, run.run_id, question.interaction_id, PROCESS_LOST)).toBe(false);
    expect(await bench.store.loadRun(run.run_id)).toEqual(run);
  });

  test('is read again after a conflict', async () => {
    const { run, question } = await stick();
    let appends = 0;
    const store = alterStore(bench.store, {
      append: async (change) => {
        appends += 1;
        return appends === 1 ? ({ committed: false, reason: 'seq' } as never) : bench.store.append(change);
      },
    });
    expect(await failWaiting({ ...bench.deps, store }, run.run_id, question.interaction_id, PROCESS_LOST)).toBe(true);
    expect(appends).toBe(2);
  });

  test('ends at the deadline of its question only if it needs its process and only a person may answer', async () => {
    expect(endsAtDeadline(await resident({ sticky: true }))).toBe(true);
    expect(endsAtDeadline(await resident())).toBe(false);
    const decides = { interactive_require_user_reply: false };
    expect(endsAtDeadline(await resident({ sticky: true, options: decides }))).toBe(false);
  });
});

async function start(options: JsonObject, isToolRunning = false) {
  const timers = new SimulatedTimers();
  const run = await resident();
  const writer = new TurnWriter(bench.deps, run, () => {});
  const context = { deps: { ...bench.deps, timers }, options: parseRuntimeOptions(options), writer };
  const clocks = new TurnClocks(context as unknown as TurnContext);
  const ends: string[] = [];
  clocks.start({ isToolRunning } as TurnParser, (reason) => void ends.push(reason));
  const pass = async (ms: number) => {
    timers.advance(ms);
    for (let round = 0; round < 5; round += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { timers, run, writer, clocks, ends, pass };
}

describe('the deadlines of a resident turn', () => {
  const LONG = { idle_timeout_sec: 100, tool_timeout_sec: 200, silence_notice_sec: 50 };

  test('limit the turn, if there is a limit', async () => {
    const limited = await start({ ...LONG, turn_timeout_sec: 20 });
    await limited.pass(19_999);
    expect(limited.ends).toEqual([]);
    await limited.pass(1);
    expect(limited.ends).toEqual(['turn_timeout']);
    const free = await start(LONG);
    expect(free.timers.lengths().every((ms) => ms >= 50_000)).toBe(true);
  });

  test('limit the silence, with another limit while a tool runs', async () => {
    const idle = await start(LONG);
    await idle.pass(99_999);
    expect(idle.ends).toEqual([]);
    await idle.pass(1);
    expect(idle.ends).toEqual(['idle_timeout']);
    const tool = await start(LONG, true);
    await tool.pass(199_999);
    expect(tool.ends).toEqual([]);
    await tool.pass(1);
    expect(tool.ends).toEqual(['tool_timeout']);
  });

  test('report a silence with whether a tool runs', async () => {
    for (const isToolRunning of [true, false]) {
      const { run, writer, pass } = await start(LONG, isToolRunning);
      await pass(50_000);
      await writer.flush();
      expect((await bench.eventsOf(run.run_id)).at(-1)).toMatchObject({
        event: { type: 'lifecycle.turn.silent' },
        data: { tool_running: isToolRunning, silent_sec: 50 },
      });
    }
  });

  test('end with the turn', async () => {
    const { timers, clocks } = await start({ ...LONG, turn_timeout_sec: 20 });
    clocks.stop();
    expect(timers.lengths()).toEqual([]);
    const unlimited = await start(LONG);
    unlimited.clocks.stop();
    expect(unlimited.timers.lengths()).toEqual([]);
  });
});
