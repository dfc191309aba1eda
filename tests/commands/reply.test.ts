// Replies of a person on a real store: each question accepts one reply, and refusals write nothing.
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { actorKey } from '../../src/commands/actor-key.js';
import { decide, replyToRun, type Reply } from '../../src/commands/reply.js';
import type { Json } from '../../src/kernel/json.js';
import type { RaspData } from '../../src/rasp/event.js';
import { schemaChecks } from '../../src/schema-check/schema-checks.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, race, refusal, T0, type QuestionName, type Waiting } from '../support/command-bench.js';

const ACTOR: Actor = { kind: 'token', name: 'ann' };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

function reply({ run, question }: Waiting, input: Partial<Reply>, deps = bench.deps): Promise<RunRecord> {
  return replyToRun(deps, run.run_id, {
    reply: { interaction_id: question.interaction_id, ...input },
    actor: ACTOR,
  });
}

async function replyEvents(runId: string): Promise<RaspData['interaction.reply.accepted'][]> {
  const events = await bench.eventsOf(runId);
  return events
    .filter(({ event }) => event.type === 'interaction.reply.accepted')
    .map(({ data }) => data as unknown as RaspData['interaction.reply.accepted']);
}

// The run still waits for the same question, and its journal has not grown.
async function expectUnchanged({ run, question }: Waiting): Promise<void> {
  expect(await bench.store.loadRun(run.run_id)).toEqual(run);
  expect(await bench.store.loadPendingInteraction(run.run_id)).toEqual(question);
}

test('a reply queues the run for its next turn and records who replied, when and with which key', async () => {
  const waiting = await bench.waiting('text');
  bench.clock.at += 5000;
  const run = await reply(waiting, { response: 'parley', idempotency_key: 'k1' });
  expect([run.status, run.attempt_number, run.waited_ms]).toEqual(['queued', 2, 5000]);
  expect(await bench.store.loadRun(run.run_id)).toEqual(run);
  expect(await bench.store.loadInteraction(waiting.question.interaction_id)).toMatchObject({
    state: 'answered',
    resolution: { at: T0 + 5000, response: 'parley', actor: ACTOR, idempotency_key: 'k1', finish: false },
  });
  const [event, ...more] = await bench.eventsOf(run.run_id).then((all) => all.slice(-2));
  expect([event?.event.type, event?.correlation.interaction_id]).toEqual([
    'interaction.reply.accepted',
    waiting.question.interaction_id,
  ]);
  expect(event?.data).toEqual({
    interaction_id: waiting.question.interaction_id,
    resolution_mode: 'user_reply',
    accepted_at: '2026-11-15T12:00:05.000Z',
    response: 'parley',
    actor: ACTOR,
    idempotency_key: 'k1',
  });
  expect(more.map(({ event: { type } }) => type)).toEqual(['lifecycle.state.changed']);
});

test('a reply without an actor records none', async () => {
  const { run, question } = await bench.waiting('text');
  await replyToRun(bench.deps, run.run_id, {
    reply: { interaction_id: question.interaction_id, response: 'x' },
    actor: null,
  });
  expect(await replyEvents(run.run_id)).toEqual([expect.not.objectContaining({ actor: expect.anything() })]);
});

test('the time of a reply is never before the last event, even if the clock was set back', async () => {
  const waiting = await bench.waiting('text');
  bench.clock.at -= 60_000;
  await reply(waiting, { response: 'x' });
  expect((await replyEvents(waiting.run.run_id)).map(({ accepted_at: at }) => at)).toEqual([
    '2026-11-15T12:00:00.000Z',
  ]);
});

test.each<[QuestionName, Json]>([
  ['text', ''],
  ['text', { any: ['json', 1, null] }],
  ['text', null],
  ['choice', 80],
  ['choice', 'none of the options'],
  ['form', { name: 'ann' }],
  ['conversation', 'Now test it.'],
  ['approval', { decision: 'approve' }],
  ['approval', { decision: 'approve_for_session' }],
  ['approval', { decision: 'decline', reason: 'no' }],
  ['approval', { decision: 'cancel' }],
])('a %s question accepts %j', async (name, response) => {
  const waiting = await bench.waiting(name);
  expect((await reply(waiting, { response })).status).toBe('queued');
  expect((await bench.store.loadLatestInteraction(waiting.run.run_id))?.resolution?.response).toEqual(response);
});

test.each<Json>([{ decision: 'yes' }, {}, 'approve', null, true, ['approve'], { decision: null }])(
  'an approval refuses %j as a decision, and the question stays open',
  async (response) => {
    const waiting = await bench.waiting('approval');
    const message = await refusal(reply(waiting, { response }), 'APPROVAL_INVALID');
    expect(message).toContain('approve, approve_for_session, decline or cancel, for example: {"decision": "approve"}');
    await expectUnchanged(waiting);
  },
);

test.each<Json>([{}, { name: 5 }, 'ann', null])('a form refuses %j with the reason', async (response) => {
  const waiting = await bench.waiting('form');
  expect(await refusal(reply(waiting, { response }), 'INVALID_ARGUMENT')).toMatch(
    /^The answer does not match the form/,
  );
  await expectUnchanged(waiting);
});

test('the check of a form counts for its actor, and works without one', async () => {
  const explain = vi.spyOn(schemaChecks, 'explainValue');
  await reply(await bench.waiting('form'), { response: { name: 'ann' } });
  const { run, question } = await bench.waiting('form');
  const input = { interaction_id: question.interaction_id, response: { name: 'ann' } };
  expect((await replyToRun(bench.deps, run.run_id, { reply: input, actor: null })).status).toBe('queued');
  expect(explain.mock.calls.map(([{ caller }]) => caller)).toEqual([actorKey(ACTOR), undefined]);
  explain.mockRestore();
});

test('a reply without a response is refused', async () => {
  const waiting = await bench.waiting('text');
  expect(await refusal(reply(waiting, {}), 'INVALID_ARGUMENT')).toMatch(/no response/);
  expect(await refusal(reply(waiting, { finish: false }), 'INVALID_ARGUMENT')).toMatch(/no response/);
  await expectUnchanged(waiting);
});

test('finish ends a conversation without a response', async () => {
  const waiting = await bench.waiting('conversation');
  expect((await reply(waiting, { finish: true })).status).toBe('queued');
  expect((await bench.store.loadLatestInteraction(waiting.run.run_id))?.resolution).toMatchObject({
    finish: true,
    response: null,
  });
});

test.each<QuestionName>(['text', 'choice', 'form', 'approval'])('finish is refused for a %s question', async (name) => {
  const waiting = await bench.waiting(name);
  const input = { finish: true, response: name === 'approval' ? { decision: 'approve' } : 'x' };
  expect(await refusal(reply(waiting, input), 'INVALID_ARGUMENT')).toMatch(/^The agent asked a question/);
  await expectUnchanged(waiting);
});

test('the review of an approval is recorded; for other questions it is dropped', async () => {
  const review = 'seen';
  const approval = await bench.waiting('approval');
  await reply(approval, { response: { decision: 'approve' }, review });
  expect((await replyEvents(approval.run.run_id))[0]?.review).toEqual(review);
  const text = await bench.waiting('text');
  await reply(text, { response: 'x', review });
  expect((await replyEvents(text.run.run_id))[0]).not.toHaveProperty('review');
});

describe('refusals', () => {
  test('an unknown run', async () => {
    const waiting = await bench.waiting();
    const elsewhere = { ...waiting, run: { ...waiting.run, run_id: 'run_unknown' } };
    await refusal(reply(elsewhere, { response: 'x' }), 'RUN_NOT_FOUND');
  });

  test('a run in auto mode', async () => {
    const waiting = await bench.waiting();
    const run = await bench.running({ execution_mode: 'auto' });
    await refusal(reply({ ...waiting, run }, { response: 'x' }), 'RUN_NOT_INTERACTIVE');
  });

  test('an unknown question', async () => {
    const waiting = await bench.waiting();
    await refusal(reply(waiting, { interaction_id: 'int_unknown', response: 'x' }), 'INTERACTION_NOT_FOUND');
    await expectUnchanged(waiting);
  });

  test('a question of another run; neither run changes', async () => {
    const [first, second] = [await bench.waiting(), await bench.waiting()];
    const message = await refusal(
      reply({ run: first.run, question: second.question }, { response: 'x' }),
      'INTERACTION_NOT_FOUND',
    );
    expect(message).toBe(`Run ${first.run.run_id} has no interaction ${second.question.interaction_id}.`);
    await expectUnchanged(first);
    await expectUnchanged(second);
  });

  test('an answered question while the run waits for another answer', async () => {
    const first = await bench.waiting();
    const next = await bench.apply(await reply(first, { response: 'x' }), { event: 'turn.started' });
    const second = await bench.ask(next, 'choice');
    await refusal(reply(first, { response: 'y' }), 'INTERACTION_STALE');
    await expectUnchanged(second);
  });

  test.each(['running', 'succeeded', 'failed', 'canceled'] as const)(
    'an answered question of a %s run',
    async (end) => {
      const waiting = await bench.waiting();
      const next = await bench.apply(await reply(waiting, { response: 'x' }), { event: 'turn.started' });
      if (end !== 'running') await bench.end(next, end);
      expect(await refusal(reply(waiting, { response: 'y' }), 'RUN_NOT_WAITING')).toBe(
        `Interaction ${waiting.question.interaction_id} is already answered, and the run is ` +
          `${end}, so there is nothing ` +
          'to answer.',
      );
    },
  );

  test('a question whose run was canceled', async () => {
    const waiting = await bench.waiting();
    await bench.apply(waiting.run, { event: 'run.canceled' });
    expect(await refusal(reply(waiting, { response: 'x', idempotency_key: 'k' }), 'RUN_NOT_WAITING')).toContain(
      'is already canceled',
    );
  });

  test('a question that the policy decided', async () => {
    const waiting = await bench.waiting('text', { runtime_options: { interactive_require_user_reply: false } });
    await decide(bench.deps, waiting.question);
    expect(await refusal(reply(waiting, { response: 'x' }), 'RUN_NOT_WAITING')).toContain('decided without you');
  });

  test('a run that was loaded before it asked', async () => {
    const waiting = await bench.waiting();
    const store = alterStore(bench.store, { loadRun: async () => ({ ...waiting.run, status: 'running' }) });
    const message = await refusal(reply(waiting, { response: 'x' }, { ...bench.deps, store }), 'RUN_NOT_WAITING');
    expect(message).toContain('is running');
    await expectUnchanged(waiting);
  });
});

describe('the same reply again', () => {
  test('with its key returns the run as it is now, and is recorded once', async () => {
    const waiting = await bench.waiting();
    const same = { response: { b: 1, a: 2 }, idempotency_key: 'k' };
    const queued = await reply(waiting, same);
    expect(await reply(waiting, { ...same, response: { a: 2, b: 1 } })).toEqual(queued);
    const ended = await bench.end(queued);
    expect(await reply(waiting, same)).toEqual(ended);
    expect(await replyEvents(queued.run_id)).toHaveLength(1);
  });

  test('with its key while the run waits for another answer returns the run', async () => {
    const first = await bench.waiting();
    const same = { response: 'x', idempotency_key: 'k' };
    const second = await bench.ask(await bench.apply(await reply(first, same), { event: 'turn.started' }));
    expect(await reply(first, same)).toEqual(second.run);
    await expectUnchanged(second);
  });

  test('of a finish returns the run; without finish it conflicts', async () => {
    const waiting = await bench.waiting('conversation');
    const run = await reply(waiting, { finish: true, idempotency_key: 'k' });
    expect(await reply(waiting, { finish: true, idempotency_key: 'k' })).toEqual(run);
    await refusal(reply(waiting, { response: null, idempotency_key: 'k' }), 'REPLY_CONFLICT');
  });

  test('with its key and another response conflicts', async () => {
    const waiting = await bench.waiting();
    await reply(waiting, { response: 'x', idempotency_key: 'k' });
    await refusal(reply(waiting, { response: 'y', idempotency_key: 'k' }), 'REPLY_CONFLICT');
  });

  test.each([undefined, 'other'])('with the key %j instead of its own is too late', async (key) => {
    const waiting = await bench.waiting();
    await reply(waiting, { response: 'x', idempotency_key: 'k' });
    await refusal(
      reply(waiting, { response: 'x', ...(key === undefined ? {} : { idempotency_key: key }) }),
      'RUN_NOT_WAITING',
    );
  });

  test('without a key is too late', async () => {
    const waiting = await bench.waiting();
    await reply(waiting, { response: 'x' });
    await refusal(reply(waiting, { response: 'x' }), 'RUN_NOT_WAITING');
  });
});

describe('at the same time', () => {
  test('exactly one of several different replies is accepted', async () => {
    const waiting = await bench.waiting();
    const { results, errors } = await race(...['a', 'b', 'c'].map((response) => reply(waiting, { response })));
    expect([results.length, errors.map((error) => (error as { code: string }).code)]).toEqual([
      1,
      ['RUN_NOT_WAITING', 'RUN_NOT_WAITING'],
    ]);
    expect(await replyEvents(waiting.run.run_id)).toHaveLength(1);
  });

  test('the same reply with the same key is accepted once, and both callers get the run', async () => {
    const waiting = await bench.waiting();
    const same = { response: 'x', idempotency_key: 'k' };
    const { results, errors } = await race(reply(waiting, same), reply(waiting, same));
    expect([results.map(({ status }) => status), errors]).toEqual([['queued', 'queued'], []]);
    expect(await replyEvents(waiting.run.run_id)).toHaveLength(1);
  });

  test('exactly one of a reply and a decision of the policy is accepted', async () => {
    const waiting = await bench.waiting('text', { runtime_options: { interactive_require_user_reply: false } });
    const [replied, decided] = await Promise.all([
      reply(waiting, { response: 'x' }).then(
        () => true,
        () => false,
      ),
      decide(bench.deps, waiting.question).then((run) => run !== null),
    ]);
    expect([replied, decided].filter(Boolean)).toHaveLength(1);
    expect((await bench.store.loadRun(waiting.run.run_id))?.attempt_number).toBe(2);
  });

  test('an unrelated event of the same run only delays the reply', async () => {
    const waiting = await bench.waiting();
    const facts = { pending: true, handle: true, requireUserReply: false, sticky: false };
    let appends = 0;
    const store = alterStore(bench.store, {
      append: async (append) => {
        appends += 1;
        if (appends === 1) await bench.apply(waiting.run, { event: 'restart.preserve_waiting', facts });
        return bench.store.append(append);
      },
    });
    expect((await reply(waiting, { response: 'x' }, { ...bench.deps, store })).status).toBe('queued');
    expect(appends).toBe(2);
  });
});
