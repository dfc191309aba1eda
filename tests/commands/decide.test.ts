// Decisions of the policy on a real store: its answer to each kind of question, and when it must not decide.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { decide, replyToRun } from '../../src/commands/reply.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { NOBODY_ANSWERED } from '../../src/run/turn-prompt.js';
import { CommandBench, QUESTIONS, T0, type QuestionName } from '../support/command-bench.js';

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const DECIDES = { interactive_require_user_reply: false };
const DEFAULTS = { ...DECIDES, auto_decide_policy: 'use_default' };
const DECLINE = { decision: 'decline' };

test.each<[QuestionName, JsonObject, string, Json]>([
  ['text', DECIDES, 'engine_judgement', NOBODY_ANSWERED],
  ['text', DEFAULTS, 'engine_judgement', NOBODY_ANSWERED],
  ['choice', DECIDES, 'engine_judgement', NOBODY_ANSWERED],
  ['choice', DEFAULTS, 'use_default', QUESTIONS.choice.default],
  ['conversation', DECIDES, 'finish', null],
  ['conversation', DEFAULTS, 'finish', null],
  ['approval', DECIDES, 'decline', DECLINE],
  ['approval', DEFAULTS, 'decline', DECLINE],
  ['form', DECIDES, 'decline', DECLINE],
  ['form', DEFAULTS, 'decline', DECLINE],
])('an expired %s question with the options %j is decided by %s', async (name, options, policy, response) => {
  const { run, question } = await bench.waiting(name, { runtime_options: options });
  bench.clock.at += 1_200_000;
  const decided = await decide(bench.deps, question);
  expect(decided).toEqual(await bench.store.loadRun(run.run_id));
  expect([decided?.status, decided?.attempt_number]).toEqual(['queued', 2]);
  expect(await bench.store.loadInteraction(question.interaction_id)).toMatchObject({
    state: 'auto_decided',
    resolution: { at: T0 + 1_200_000, response, actor: null, finish: policy === 'finish' },
  });
  const event = (await bench.eventsOf(run.run_id)).at(-2);
  expect([event?.event.type, event?.correlation.interaction_id]).toEqual([
    'interaction.auto_decide.timeout',
    question.interaction_id,
  ]);
  expect(event?.data).toEqual({
    interaction_id: question.interaction_id,
    resolution_mode: 'auto_decide_timeout',
    policy,
    decided_at: '2026-11-15T12:20:00.000Z',
    response,
  });
});

test('no policy ever approves: whatever the default of an approval is, it is declined', async () => {
  const { question } = await bench.waiting('approval', { runtime_options: DEFAULTS });
  const tempting = { ...question, question: { ...question.question, default: { decision: 'approve' } } };
  await decide(bench.deps, tempting);
  expect((await bench.store.loadInteraction(question.interaction_id))?.resolution?.response).toEqual(DECLINE);
});

test('a run that requires a reply of a person is never decided', async () => {
  const waiting = await bench.waiting('text', { runtime_options: { interactive_require_user_reply: true } });
  bench.clock.at += 365 * 24 * 3_600_000;
  expect(await decide(bench.deps, waiting.question)).toBeNull();
  expect(await bench.store.loadRun(waiting.run.run_id)).toEqual(waiting.run);
});

test('the time of a decision is never before the last event', async () => {
  const { run, question } = await bench.waiting('text', { runtime_options: DECIDES });
  bench.clock.at -= 60_000;
  await decide(bench.deps, question);
  expect((await bench.eventsOf(run.run_id)).at(-2)?.data).toMatchObject({ decided_at: '2026-11-15T12:00:00.000Z' });
});

test('a question that was answered, decided or canceled meanwhile is not decided again', async () => {
  const answered = await bench.waiting('text', { runtime_options: DECIDES });
  await replyToRun(bench.deps, answered.run.run_id, {
    reply: { interaction_id: answered.question.interaction_id, response: 'x' },
    actor: null,
  });
  expect(await decide(bench.deps, answered.question)).toBeNull();
  const decided = await bench.waiting('text', { runtime_options: DECIDES });
  const [first, second] = await Promise.all([
    decide(bench.deps, decided.question),
    decide(bench.deps, decided.question),
  ]);
  expect([first, second].filter((run) => run !== null)).toHaveLength(1);
  expect(await decide(bench.deps, decided.question)).toBeNull();
  const canceled = await bench.waiting('text', { runtime_options: DECIDES });
  await bench.apply(canceled.run, { event: 'run.canceled' });
  expect(await decide(bench.deps, canceled.question)).toBeNull();
  expect((await bench.store.loadRun(canceled.run.run_id))?.status).toBe('canceled');
});

test('a question of a deleted run is not decided', async () => {
  const { question } = await bench.waiting('text', { runtime_options: DECIDES });
  expect(await decide(bench.deps, { ...question, run_id: 'run_deleted' })).toBeNull();
});
