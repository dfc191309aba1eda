// Every outcome of creating a run and of answering it: on the real store, with real processes, and time moved by hand.
import { EventEmitter, once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import ERRORS from '../../contract/errors.json' with { type: 'json' };
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import type { Reply } from '../../src/commands/reply.js';
import { viewInteraction, viewRun } from '../../src/journal/run-view.js';
import { RequestError } from '../../src/run/request-error.js';
import { NOBODY_ANSWERED } from '../../src/run/turn-prompt.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import type { LoggedStart } from '../support/stand-in.js';
import { SimulatedTime } from '../support/simulated-timers.js';

const ASK = '[[ask Which database?|Postgres|SQLite]]';
const TALK = '[[answer What else?]]';
const TIMEOUT_SEC = 600;
const HUNDRED_YEARS_SEC = 3_153_600_000;
const NOT_STRICT = { interactive_require_user_reply: false, session_timeout_sec: TIMEOUT_SEC };

interface Scene {
  readonly bench: Bench;
  readonly root: string;
  readonly time: SimulatedTime;
  create(prompt: string, rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
  pending(run: RunRecord): Promise<InteractionRecord>;
  reply(run: RunRecord, response: Json, rest?: Partial<Reply>): Promise<RunRecord>;
  waitUntilIdle(run: RunRecord): Promise<RunRecord>;
}

type Changes = Parameters<typeof openBench>[1];

function sceneOf(bench: Bench, root: string, time: SimulatedTime): Scene {
  const waitUntilIdle = async ({ run_id: id }: RunRecord) => {
    await bench.orchestrator.waitUntilIdle(id);
    return expectSound(bench, id);
  };
  const pending = async ({ run_id: id }: RunRecord) => {
    const pending = await bench.data.store.loadPendingInteraction(id);
    expect(pending).not.toBeNull();
    return pending as InteractionRecord;
  };
  return {
    bench,
    root,
    time,
    waitUntilIdle,
    pending,
    create: async (prompt, rest = {}) =>
      waitUntilIdle(
        await bench.orchestrator.create({
          engine: 'codex',
          prompt,
          execution_mode: 'interactive',
          permission: 'full',
          ...rest,
        }),
      ),
    reply: async (run, response, rest = {}) => {
      const { interaction_id: id } =
        rest.interaction_id === undefined ? await pending(run) : { interaction_id: rest.interaction_id };
      await bench.orchestrator.reply(run.run_id, { response, ...rest, interaction_id: id });
      return waitUntilIdle(run);
    },
  };
}

async function withScene(work: (scene: Scene) => Promise<void>, changes: Changes = {}): Promise<void> {
  const root = createRoot();
  const time = new SimulatedTime();
  const bench = await openBench(root, { clock: time.clock, timers: time.createTimers(), ...changes });
  try {
    await work(sceneOf(bench, root, time));
  } finally {
    await bench.close();
  }
}

// The call is refused with this code, and nothing was written anywhere.
async function expectRefusal({ bench }: Scene, code: string, call: () => Promise<unknown>): Promise<void> {
  const before = await bench.data.store.listRuns({ limit: 1000 });
  const questions = await bench.data.store.listPending({ limit: 1000 });
  await expect(call()).rejects.toSatisfy(
    (error) => error instanceof RequestError && error.code === code,
    `a refusal with ${code}`,
  );
  expect(await bench.data.store.listRuns({ limit: 1000 })).toEqual(before);
  expect(await bench.data.store.listPending({ limit: 1000 })).toEqual(questions);
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

// The input of the engine in a turn.
function promptOf(scene: Scene, start: number): string {
  const { argv, stdin } = startsIn(scene.root)[start] as LoggedStart;
  return (argv.at(-1) === '-' ? stdin : argv.at(-1)) ?? '';
}

async function typesOf(scene: Scene, run: RunRecord): Promise<{ rasp: string[]; fcmp: JsonObject[] }> {
  const { rasp, fcmp } = await journalOf(scene.bench, run.run_id);
  return { rasp: rasp.map(({ event }) => event.type), fcmp: fcmp.map((line) => JSON.parse(line) as JsonObject) };
}

// The conversation's event with the one that follows it.
async function pairOf(scene: Scene, run: RunRecord, type: string): Promise<JsonObject[]> {
  const { fcmp } = await typesOf(scene, run);
  const at = fcmp.findIndex((event) => event['type'] === type);
  expect(at).toBeGreaterThan(0);
  return fcmp.slice(at, at + 2);
}

// Moves the time past the deadline of the pending question.
async function decided(scene: Scene, waiting: RunRecord): Promise<RunRecord> {
  const { interaction_id: id } = await scene.pending(waiting);
  scene.time.advance(TIMEOUT_SEC * 1000);
  await until(async () => (await scene.bench.data.store.loadInteraction(id))?.state !== 'pending');
  const run = await scene.waitUntilIdle(waiting);
  expect(await scene.bench.data.store.loadInteraction(id)).toMatchObject({ state: 'auto_decided' });
  return run;
}

describe('a reply', () => {
  test('is accepted once: the next attempt is queued, the answer is stored and passed to the engine', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}[[done 1]]`);
      const { interaction_id: id } = await scene.pending(waiting);
      const actor = { kind: 'user' as const, name: 'ann' };
      const queued = await scene.bench.orchestrator.reply(
        waiting.run_id,
        { interaction_id: id, response: 'Postgres', idempotency_key: 'k' },
        actor,
      );
      expect(queued).toMatchObject({ status: 'queued', attempt_number: 2 });
      expect(await scene.waitUntilIdle(waiting)).toMatchObject({ status: 'succeeded', attempt_number: 2, result: 1 });
      expect(await scene.bench.data.store.loadInteraction(id)).toMatchObject({
        state: 'answered',
        resolution: { response: 'Postgres', idempotency_key: 'k', finish: false, actor },
      });
      expect(promptOf(scene, 1)).toBe('Postgres');
      expect(await pairOf(scene, waiting, 'interaction.reply.accepted')).toMatchObject([
        {
          data: {
            interaction_id: id,
            resolution_mode: 'user_reply',
            accepted_at: expect.any(String),
            response: 'Postgres',
            actor,
          },
        },
        {
          type: 'conversation.state.changed',
          data: { from: 'waiting_user', to: 'queued', trigger: 'interaction.reply.accepted' },
        },
      ]);
    });
  });

  test('given again with the same key and the same body answers the same run and changes nothing', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(ASK);
      const { interaction_id: id } = await scene.pending(waiting);
      const reply: Reply = { interaction_id: id, response: { a: 1, b: [true, null] }, idempotency_key: 'k' };
      await scene.bench.orchestrator.reply(waiting.run_id, reply);
      const after = await scene.waitUntilIdle(waiting);
      expect(await scene.bench.orchestrator.reply(waiting.run_id, reply)).toEqual(after);
      expect(
        await scene.bench.orchestrator.reply(waiting.run_id, { ...reply, response: { b: [true, null], a: 1 } }),
      ).toEqual(after);
      expect(await scene.waitUntilIdle(waiting)).toEqual(after);
      expect(startsIn(scene.root)).toHaveLength(2);
    });
  });

  test('with the same key and another body is refused with REPLY_CONFLICT', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${TALK}`);
      const { interaction_id: id } = await scene.pending(waiting);
      await scene.reply(waiting, 'one', { idempotency_key: 'k' });
      for (const other of [
        { response: 'two' },
        { response: null },
        { response: 'one', finish: true },
        { finish: true },
      ]) {
        await expectRefusal(scene, 'REPLY_CONFLICT', () =>
          scene.bench.orchestrator.reply(waiting.run_id, { interaction_id: id, idempotency_key: 'k', ...other }),
        );
      }
    });
  });

  test('to a closed question is refused with INTERACTION_STALE while the run waits for another answer', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}${ASK}`);
      const { interaction_id: id } = await scene.pending(waiting);
      expect((await scene.reply(waiting, 'Postgres')).status).toBe('waiting_user');
      for (const again of [{ response: 'Postgres' }, { response: 'Postgres', idempotency_key: 'new' }]) {
        await expectRefusal(scene, 'INTERACTION_STALE', () =>
          scene.bench.orchestrator.reply(waiting.run_id, { interaction_id: id, ...again }),
        );
      }
    });
  });

  test('to a run that does not wait is refused with RUN_NOT_WAITING', async () => {
    await withScene(async (scene) => {
      const ended = await scene.create(`${ASK}[[done 1]]`);
      const { interaction_id: answered } = await scene.pending(ended);
      await scene.reply(ended, 'Postgres');
      const canceled = await scene.create(ASK);
      const { interaction_id: dropped } = await scene.pending(canceled);
      await scene.bench.orchestrator.cancel(canceled.run_id);
      await expectRefusal(scene, 'RUN_NOT_WAITING', () =>
        scene.bench.orchestrator.reply(ended.run_id, { interaction_id: answered, response: 'x' }),
      );
      await expectRefusal(scene, 'RUN_NOT_WAITING', () =>
        scene.bench.orchestrator.reply(canceled.run_id, { interaction_id: dropped, response: 'x' }),
      );
    });
  });

  test('to an unknown run or interaction, or to the interaction of another run, is refused as not found', async () => {
    await withScene(async (scene) => {
      const one = await scene.create(ASK);
      const other = await scene.create(ASK);
      const { interaction_id: id } = await scene.pending(other);
      await expectRefusal(scene, 'RUN_NOT_FOUND', () =>
        scene.bench.orchestrator.reply('run_none', { interaction_id: id, response: 'x' }),
      );
      await expectRefusal(scene, 'INTERACTION_NOT_FOUND', () =>
        scene.bench.orchestrator.reply(one.run_id, { interaction_id: 'int_none', response: 'x' }),
      );
      await expectRefusal(scene, 'INTERACTION_NOT_FOUND', () =>
        scene.bench.orchestrator.reply(one.run_id, { interaction_id: id, response: 'x' }),
      );
    });
  });

  test('to an auto run is refused with RUN_NOT_INTERACTIVE', async () => {
    await withScene(async (scene) => {
      const run = await scene.create('[[answer Fine.]]', { execution_mode: 'auto' });
      expect(run).toMatchObject({ status: 'succeeded', attempt_number: 1 });
      await expectRefusal(scene, 'RUN_NOT_INTERACTIVE', () =>
        scene.bench.orchestrator.reply(run.run_id, { interaction_id: 'int_none', response: 'x' }),
      );
    });
  });

  test('without a response is refused, and the question stays', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(ASK);
      const { interaction_id: id } = await scene.pending(waiting);
      await expectRefusal(scene, 'INVALID_ARGUMENT', () =>
        scene.bench.orchestrator.reply(waiting.run_id, { interaction_id: id }),
      );
    });
  });

  test.each<[string, Json, string]>([
    ['free text although options were offered', 'neither, use files', 'neither, use files'],
    ['an object', { choice: 'Postgres', version: 17 }, '{"choice":"Postgres","version":17}'],
    ['a list', ['a', 1, null], '["a",1,null]'],
    ['a number', 42, '42'],
    ['null', null, 'null'],
    ['left empty', ' ', '(the answer was left empty)'],
  ])('may be %s', async (_what, response, problem) => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}[[done 1]]`);
      const { interaction_id: id } = await scene.pending(waiting);
      expect((await scene.reply(waiting, response)).status).toBe('succeeded');
      expect(promptOf(scene, 1)).toBe(problem);
      expect((await scene.bench.data.store.loadInteraction(id))?.resolution?.response).toEqual(response);
    });
  });

  test('of a hundred people at once is accepted from exactly one, and the engine is resumed once', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}[[done 1]]`);
      const { interaction_id: id } = await scene.pending(waiting);
      const outcomes = await Promise.allSettled(
        Array.from({ length: 100 }, (_, index) =>
          scene.bench.orchestrator.reply(waiting.run_id, {
            interaction_id: id,
            response: `answer ${index}`,
            ...(index % 2 === 0 ? { idempotency_key: `key ${index}` } : {}),
          }),
        ),
      );
      const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
      const losers = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? [outcome.reason as RequestError] : [],
      );
      expect(losers).toHaveLength(99);
      for (const { code } of losers) expect(ERRORS[code].http_status, code).toBe(409);
      expect(await scene.waitUntilIdle(waiting)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
      expect(promptOf(scene, 1)).toBe(`answer ${winner}`);
      expect(startsIn(scene.root)).toHaveLength(2);
      expect((await typesOf(scene, waiting)).rasp.filter((type) => type === 'interaction.reply.accepted')).toHaveLength(
        1,
      );
    });
  });

  test('starts the next attempt each time, until max_attempt turns are used up', async () => {
    await withScene(async (scene) => {
      let run = await scene.create(`${ASK}${ASK}${ASK}${ASK}`, { runtime_options: { max_attempt: 4 } });
      for (const attempt of [1, 2, 3]) {
        expect(run).toMatchObject({ status: 'waiting_user', attempt_number: attempt });
        run = await scene.reply(run, `answer ${attempt}`);
      }
      expect(run).toMatchObject({
        status: 'failed',
        attempt_number: 4,
        error: { code: 'INTERACTIVE_MAX_ATTEMPT_EXCEEDED', details: { unanswered: { prompt: 'Which database?' } } },
      });
      const { rasp } = await journalOf(scene.bench, run.run_id);
      expect([...new Set(rasp.map((event) => event.attempt_number))]).toEqual([1, 2, 3, 4]);
      expect(startsIn(scene.root).map(({ env }) => env['PARLEY_TURN'])).toEqual(
        [1, 2, 3, 4].map((attempt) => `${run.run_id}/${attempt}`),
      );
    });
  });

  test('reaches the engine even when the clock was set back since the previous question', async () => {
    await withScene(async (scene) => {
      const first = await scene.create(`${ASK}${ASK}[[done 1]]`);
      scene.time.setClock(scene.time.now - 3_600_000);
      const second = await scene.reply(first, 'one');
      expect((await scene.reply(second, 'two')).status).toBe('succeeded');
      expect([1, 2].map((start) => promptOf(scene, start))).toEqual(['one', 'two']);
    });
  });
});

describe('finish', () => {
  test('ends a conversation in which nothing was asked, without a process', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(TALK);
      expect((await scene.pending(waiting)).question).toMatchObject({
        kind: 'open_text',
        channel: 'conversation',
        prompt: 'What else?',
      });
      const ended = await scene.reply(waiting, null, { finish: true });
      expect(ended).toMatchObject({ status: 'succeeded', attempt_number: 2, result: 'What else?' });
      expect(startsIn(scene.root)).toHaveLength(1);
      const edges = (await journalOf(scene.bench, waiting.run_id)).rasp
        .filter(({ event }) => event.type === 'lifecycle.state.changed')
        .map(({ data }) => `${String(data['from'])} ${String(data['to'])}`);
      expect(edges).toEqual([
        'queued running',
        'running waiting_user',
        'waiting_user queued',
        'queued running',
        'running succeeded',
      ]);
    });
  });

  test('of a real question is refused, and the question stays', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(ASK);
      const { interaction_id: id } = await scene.pending(waiting);
      await expectRefusal(scene, 'INVALID_ARGUMENT', () =>
        scene.bench.orchestrator.reply(waiting.run_id, { interaction_id: id, finish: true }),
      );
      expect(startsIn(scene.root)).toHaveLength(1);
    });
  });
});

describe('when nobody answers in time', () => {
  test('a strict run waits on, past its time, and is answered as ever', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}[[done 1]]`, {
        runtime_options: { ...NOT_STRICT, interactive_require_user_reply: true },
      });
      const { due_at: due } = await scene.pending(waiting);
      const view = async () => viewRun(waiting, await scene.pending(waiting), scene.bench.deps.clock.now()).interaction;
      expect(await view()).toMatchObject({ overdue: false });
      // Another run, so that the timer exists and fires.
      const other = await scene.create(`${ASK}[[done 1]]`, { runtime_options: NOT_STRICT });
      scene.time.advance(10 * TIMEOUT_SEC * 1000);
      await until(async () => (await scene.bench.data.store.loadRun(other.run_id))?.status !== 'waiting_user');
      await scene.waitUntilIdle(other);
      expect(scene.time.now).toBeGreaterThan(due);
      expect(await scene.waitUntilIdle(waiting)).toEqual(waiting);
      expect(await scene.pending(waiting)).toMatchObject({ state: 'pending', due_at: due, decides: false });
      expect(await view()).toMatchObject({ overdue: true, due_at: new Date(due).toISOString() });
      const late = await scene.pending(waiting);
      expect(viewInteraction(late, due).overdue).toBe(false);
      expect((await scene.reply(waiting, 'late')).status).toBe('succeeded');
      const answered = (await scene.bench.data.store.loadInteraction(late.interaction_id)) as InteractionRecord;
      expect(viewInteraction(answered, scene.time.now)).toMatchObject({ overdue: false, answer: { response: 'late' } });
    });
  });

  test.each<[string, string, JsonObject, string, string]>([
    ['engine_judgement: the engine learns that nobody answered', ASK, {}, 'engine_judgement', NOBODY_ANSWERED],
    [
      'use_default: the default of the question is the answer',
      '[[answer {"ask_user":{"prompt":"Which?","default":"SQLite"}}]]',
      { auto_decide_policy: 'use_default' },
      'use_default',
      'SQLite',
    ],
    [
      'use_default without a default: the engine learns that nobody answered',
      ASK,
      { auto_decide_policy: 'use_default' },
      'engine_judgement',
      NOBODY_ANSWERED,
    ],
  ])('a run that is not strict is decided by %s', async (_what, prompt, options, policy, decision) => {
    await withScene(async (scene) => {
      const waiting = await scene.create(prompt, { runtime_options: { ...NOT_STRICT, ...options } });
      const { interaction_id: id } = await scene.pending(waiting);
      expect(await decided(scene, waiting)).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
      expect(promptOf(scene, 1)).toBe(decision);
      expect(await pairOf(scene, waiting, 'interaction.auto_decide.timeout')).toMatchObject([
        { data: { interaction_id: id, resolution_mode: 'auto_decide_timeout', policy } },
        {
          type: 'conversation.state.changed',
          data: { from: 'waiting_user', to: 'queued', trigger: 'interaction.auto_decide.timeout' },
        },
      ]);
      await expectRefusal(scene, 'INTERACTION_STALE', () =>
        scene.bench.orchestrator.reply(waiting.run_id, { interaction_id: id, response: 'late' }),
      );
    });
  });

  test('a conversation in which nothing was asked is finished without a process', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(TALK, { runtime_options: NOT_STRICT });
      expect(await decided(scene, waiting)).toMatchObject({
        status: 'succeeded',
        attempt_number: 2,
        result: 'What else?',
      });
      expect(startsIn(scene.root)).toHaveLength(1);
    });
  });

  test('the limits of one turn never end a run that waits', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(`${ASK}[[done 1]]`, {
        runtime_options: { turn_timeout_sec: 1, idle_timeout_sec: 1, session_timeout_sec: 10 },
      });
      scene.time.advance(365 * 86_400_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await scene.waitUntilIdle(waiting)).toEqual(waiting);
      expect(await scene.reply(waiting, 'a year later', { idempotency_key: 'k' })).toMatchObject({
        attempt_number: 2,
        status: 'succeeded',
      });
    });
  });

  test('a timeout of a hundred years is kept and shown, and the question can be answered', async () => {
    await withScene(async (scene) => {
      const options = {
        ...NOT_STRICT,
        session_timeout_sec: HUNDRED_YEARS_SEC,
        turn_timeout_sec: HUNDRED_YEARS_SEC,
        idle_timeout_sec: HUNDRED_YEARS_SEC,
      };
      const answered = await scene.create(`${ASK}[[done 1]]`, { runtime_options: options });
      const silent = await scene.create(`${ASK}[[done 1]]`, { runtime_options: options });
      const pending = await scene.pending(answered);
      expect(pending.due_at - pending.asked_at).toBe(HUNDRED_YEARS_SEC * 1000);
      expect(viewInteraction(pending, scene.time.now)).toMatchObject({
        overdue: false,
        due_at: expect.stringMatching(/^2125-/),
      });
      scene.time.advance(99 * 365 * 86_400_000);
      expect((await scene.reply(answered, 'late')).status).toBe('succeeded');
      scene.time.advance(365 * 86_400_000);
      await until(async () => (await scene.bench.data.store.loadRun(silent.run_id))?.status !== 'waiting_user');
      expect((await scene.waitUntilIdle(silent)).status).toBe('succeeded');
    });
  });

  test('nothing is decided before the time expires', async () => {
    await withScene(async (scene) => {
      const waiting = await scene.create(ASK, { runtime_options: NOT_STRICT });
      scene.time.advance((TIMEOUT_SEC - 60) * 1000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await scene.waitUntilIdle(waiting)).toEqual(waiting);
      expect((await decided(scene, waiting)).attempt_number).toBe(2);
    });
  });

  test('a decision that fell due while Parley was down is made at the next start, once', async () => {
    const root = createRoot();
    const time = new SimulatedTime();
    const open = async () =>
      sceneOf(await openBench(root, { clock: time.clock, timers: time.createTimers() }), root, time);
    const before = await open();
    const waiting = await before.create(`${ASK}[[done 1]]`, { runtime_options: NOT_STRICT });
    const strict = await before.create(`${ASK}[[done 1]]`);
    await before.bench.close();
    time.advance(TIMEOUT_SEC * 1000);
    const after = await open();
    await until(async () => (await after.bench.data.store.loadRun(waiting.run_id))?.status !== 'waiting_user');
    expect(await after.waitUntilIdle(waiting)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
    expect(
      (await typesOf(after, waiting)).rasp.filter((type) => type === 'interaction.auto_decide.timeout'),
    ).toHaveLength(1);
    expect((await after.waitUntilIdle(strict)).status).toBe('waiting_user');
    expect(startsIn(root)).toHaveLength(3);
    await after.bench.close();
  });

  test('a time that is not over yet at a restart is waited for again', async () => {
    const root = createRoot();
    const time = new SimulatedTime();
    const open = async () =>
      sceneOf(await openBench(root, { clock: time.clock, timers: time.createTimers() }), root, time);
    const before = await open();
    const waiting = await before.create(`${ASK}[[done 1]]`, { runtime_options: NOT_STRICT });
    await before.bench.close();
    time.advance((TIMEOUT_SEC / 2) * 1000);
    const after = await open();
    expect((await after.waitUntilIdle(waiting)).status).toBe('waiting_user');
    expect(await decided(after, waiting)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
    await after.bench.close();
  });
});

describe('creating a run', () => {
  const base: CreateRunRequest = { engine: 'codex', prompt: '[[done 1]]', execution_mode: 'interactive' };

  test.each<[string, Partial<CreateRunRequest>, string]>([
    ['an unknown engine', { engine: 'cobol' }, 'UNKNOWN_ENGINE'],
    ['an empty prompt', { prompt: ' \n' }, 'INVALID_ARGUMENT'],
    ['a relative cwd', { cwd: 'here' }, 'INVALID_ARGUMENT'],
    ['a cwd that is not there', { cwd: '/nowhere/at/all' }, 'INVALID_ARGUMENT'],
    ['a cwd that is a file', { cwd: new URL(import.meta.url).pathname }, 'INVALID_ARGUMENT'],
    ['an output_schema that is no schema', { output_schema: { type: 'nonsense' } }, 'INVALID_ARGUMENT'],
    ['an unknown runtime option', { runtime_options: { sesion_timeout_sec: 5 } }, 'INVALID_ARGUMENT'],
    ['an inherited name as runtime option', { runtime_options: { constructor: 5 } }, 'INVALID_ARGUMENT'],
    [
      'a runtime option of the wrong type',
      { runtime_options: { interactive_require_user_reply: 'yes' } },
      'INVALID_ARGUMENT',
    ],
    ['a runtime option out of range', { runtime_options: { max_attempt: 0 } }, 'INVALID_ARGUMENT'],
    ['an unknown policy', { runtime_options: { auto_decide_policy: 'approve' } }, 'INVALID_ARGUMENT'],
    [
      'a session timeout of more than a hundred years',
      { runtime_options: { session_timeout_sec: HUNDRED_YEARS_SEC + 1 } },
      'INVALID_ARGUMENT',
    ],
    [
      'a turn timeout of more than a hundred years',
      { runtime_options: { turn_timeout_sec: HUNDRED_YEARS_SEC + 1 } },
      'INVALID_ARGUMENT',
    ],
    [
      'an idle timeout of more than a hundred years',
      { runtime_options: { idle_timeout_sec: HUNDRED_YEARS_SEC + 1 } },
      'INVALID_ARGUMENT',
    ],
    [
      'the largest whole number as a timeout',
      { runtime_options: { session_timeout_sec: Number.MAX_SAFE_INTEGER } },
      'INVALID_ARGUMENT',
    ],
    ['no time at all as a timeout', { runtime_options: { session_timeout_sec: 0 } }, 'INVALID_ARGUMENT'],
    ['no prompt', { prompt: undefined as never }, 'INVALID_ARGUMENT'],
    ['a number as prompt', { prompt: 7 as never }, 'INVALID_ARGUMENT'],
    ['an unknown permission', { permission: 'root' as never }, 'INVALID_ARGUMENT'],
    ['an unknown mode', { execution_mode: 'bogus' as never }, 'INVALID_ARGUMENT'],
    ['a label that is an object', { labels: { a: {} } as never }, 'INVALID_ARGUMENT'],
    ['a label that is a number', { labels: { a: 1 } as never }, 'INVALID_ARGUMENT'],
    ['an unknown key', { promt: 'x' } as never, 'INVALID_ARGUMENT'],
  ])('with %s is refused, and nothing is stored', async (_what, wrong, code) => {
    await withScene(async (scene) => {
      await expectRefusal(scene, code, () => scene.bench.orchestrator.create({ ...base, ...wrong }));
      expect(startsIn(scene.root)).toEqual([]);
    });
  });

  test('twice with one request id and the same body answers the first run', async () => {
    await withScene(async (scene) => {
      const request: CreateRunRequest = { ...base, request_id: 'req', labels: { a: '1', b: '2' } };
      const [first, second] = await Promise.all([
        scene.bench.orchestrator.create(request),
        scene.bench.orchestrator.create({ ...request, labels: { b: '2', a: '1' } }),
      ]);
      expect(second.run_id).toBe(first.run_id);
      const ended = await scene.waitUntilIdle(first);
      expect(await scene.bench.orchestrator.create(request)).toEqual(ended);
      expect(startsIn(scene.root)).toHaveLength(1);
      expect(await scene.bench.data.store.listRuns({ limit: 10 })).toHaveLength(1);
    });
  });

  test('repeated with one request id succeeds although its directory was deleted since', async () => {
    await withScene(async (scene) => {
      const cwd = join(scene.root, 'work');
      mkdirSync(cwd);
      const request: CreateRunRequest = { ...base, cwd, request_id: 'req' };
      const ended = await scene.waitUntilIdle(await scene.bench.orchestrator.create(request));
      rmSync(cwd, { recursive: true });
      expect(await scene.bench.orchestrator.create(request)).toEqual(ended);
    });
  });

  test('twice with one request id and another body is refused with REQUEST_ID_CONFLICT', async () => {
    await withScene(async (scene) => {
      await scene.waitUntilIdle(await scene.bench.orchestrator.create({ ...base, request_id: 'req' }));
      await expectRefusal(scene, 'REQUEST_ID_CONFLICT', () =>
        scene.bench.orchestrator.create({ ...base, prompt: 'other', request_id: 'req' }),
      );
      await expectRefusal(scene, 'REQUEST_ID_CONFLICT', () =>
        scene.bench.orchestrator.create({ ...base, labels: { a: '1' }, request_id: 'req' }),
      );
    });
  });

  test('in a directory of the caller runs the engine there', async () => {
    await withScene(async (scene) => {
      const cwd = join(scene.root, 'work');
      mkdirSync(cwd);
      await scene.create('[[done 1]]', { cwd });
      expect(startsIn(scene.root)[0]?.cwd).toBe(cwd);
    });
  });
});

describe('a turn', () => {
  const hanging: CreateRunRequest = {
    engine: 'codex',
    prompt: '[[hang]]',
    execution_mode: 'interactive',
    permission: 'full',
  };
  // Lines on stderr that repeat the message are held back in the conversation until the turn continues or ends.
  const ECHO = '[[answer stand-in: line 1 of 2]][[answer stand-in: line 2 of 2]][[sleep 50]][[stderr 2]][[hang]]';
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } };

  test.each<[string, string, string, string | null]>([
    ['a done marker that fits', '[[done {"n":1}]]', 'succeeded', null],
    ['a last message that fits', '[[answer {"n":1}]]', 'succeeded', null],
    ['a done marker that does not fit', '[[done {"n":"one"}]]', 'failed', 'OUTPUT_INVALID'],
    ['a last message that is no JSON', '[[answer done]]', 'failed', 'OUTPUT_INVALID'],
  ])('with an output_schema and %s', async (_what, prompt, status, code) => {
    await withScene(async (scene) => {
      for (const mode of ['auto', 'interactive'] as const) {
        const run = await scene.create(prompt, { output_schema: schema, execution_mode: mode });
        expect([run.status, run.error?.code ?? null]).toEqual([status, code]);
        if (status === 'succeeded') expect(run.result).toEqual({ n: 1 });
      }
    });
  });

  test.each<[string, Changes]>([
    ['is not installed', { runtime: { findProgram: async () => null } }],
    ['cannot be started', { runtime: { findProgram: async () => ['/nowhere/codex'] } }],
  ])('whose engine %s fails with ENGINE_NOT_FOUND, from queued over running', async (_what, changes) => {
    await withScene(async (scene) => {
      const run = await scene.create('[[done 1]]');
      expect(run).toMatchObject({ status: 'failed', error: { code: 'ENGINE_NOT_FOUND' } });
      const changed = (await journalOf(scene.bench, run.run_id)).rasp
        .filter(({ event }) => event.type === 'lifecycle.state.changed')
        .map(({ data }) => [data['from'], data['trigger'], data['to']]);
      expect(changed).toEqual([
        ['queued', 'turn.started', 'running'],
        ['running', 'turn.failed', 'failed'],
      ]);
    }, changes);
  });

  test('that takes too long is ended with TURN_TIMEOUT, and no process is left', async () => {
    await withScene(async (scene) => {
      const run = await scene.bench.orchestrator.create({
        ...hanging,
        runtime_options: { turn_timeout_sec: 1000, idle_timeout_sec: 100_000 },
      });
      await until(() => startsIn(scene.root).length === 1);
      await scene.time.armed(1_000_000);
      scene.time.advance(1_000_000);
      expect(await scene.waitUntilIdle(run)).toMatchObject({ status: 'failed', error: { code: 'TURN_TIMEOUT' } });
    });
  });

  test('that prints nothing for too long is ended with ENGINE_IDLE_TIMEOUT, and no process is left', async () => {
    await withScene(async (scene) => {
      const run = await scene.bench.orchestrator.create({
        ...hanging,
        runtime_options: { turn_timeout_sec: 1e9, idle_timeout_sec: 100 },
      });
      await until(() => startsIn(scene.root).length === 1);
      const status = async () => (await scene.bench.data.store.loadRun(run.run_id))?.status;
      // It may still print something, and then its time starts again.
      await until(async () => {
        scene.time.advance(100_000);
        return (await status()) !== 'running';
      });
      expect(await scene.waitUntilIdle(run)).toMatchObject({
        status: 'failed',
        error: { code: 'ENGINE_IDLE_TIMEOUT' },
      });
    });
  });

  test('that is canceled before it has begun leaves no process and no failure behind', async () => {
    const latch = new EventEmitter();
    const asked = once(latch, 'asked');
    const findProgram = async () => {
      const go = once(latch, 'go');
      latch.emit('asked');
      await go;
      return ['/nowhere/codex'];
    };
    await withScene(
      async (scene) => {
        const run = await scene.bench.orchestrator.create({ ...hanging });
        await asked;
        const canceled = await scene.bench.orchestrator.cancel(run.run_id);
        latch.emit('go');
        expect(await scene.waitUntilIdle(run)).toEqual(canceled);
        expect(canceled.status).toBe('canceled');
      },
      { runtime: { findProgram } },
    );
  });

  test('for which no slot is free waits for one, and is waited for', async () => {
    await withScene(
      async (scene) => {
        const runs = await Promise.all(
          ['[[answer One.]][[done 1]]', '[[done 2]]', '[[done 3]]'].map((prompt) =>
            scene.bench.orchestrator.create({ ...hanging, prompt }),
          ),
        );
        const ended = await Promise.all(runs.toReversed().map((run) => scene.waitUntilIdle(run)));
        expect(ended.map(({ status, result }) => [status, result])).toEqual([
          ['succeeded', 3],
          ['succeeded', 2],
          ['succeeded', 1],
        ]);
      },
      { settings: { slots: 1 } },
    );
  });

  test('cut off by a closed store fails at the next start with its code; its conversation is the journal', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const { run_id: id } = await bench.orchestrator.create({ ...hanging, prompt: ECHO });
    await until(async () =>
      (await bench.data.store.readJournal(id, 'rasp', { limit: 1000 })).some(
        (line) => line.includes('line 2 of 2') && line.includes('raw.stderr'),
      ),
    );
    await bench.data.close();
    const again = await openBench(root);
    expect(await expectSound(again, id)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    });
    await again.close();
    await until(() => bench.failures.length > 0);
  });

  test('that is cut off by a shutdown fails with its code, and its conversation equals the journal', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const { run_id: id } = await bench.orchestrator.create({ ...hanging, prompt: ECHO });
    await until(async () =>
      (await bench.data.store.readJournal(id, 'rasp', { limit: 1000 })).some(
        (line) => line.includes('line 2 of 2') && line.includes('raw.stderr'),
      ),
    );
    await bench.close();
    const again = await openBench(root);
    expect(await expectSound(again, id)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    });
    expect((await journalOf(again, id)).rasp.at(-2)?.event.type).toBe('lifecycle.turn.ended');
    await again.close();
  });
});
