// Cancellation of runs without a running turn, on a real store.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { cancelIdle } from '../../src/commands/cancel.js';
import { replyToRun } from '../../src/commands/reply.js';
import type { Actor } from '../../src/store/store.js';
import { CommandBench, refusal } from '../support/command-bench.js';

const ACTOR: Actor = { kind: 'token', name: 'ann' };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

test('a queued run is canceled, with the actor in its journal', async () => {
  const { run_id: runId } = await bench.queued();
  const run = await cancelIdle(bench.deps, runId, ACTOR);
  expect(run?.status).toBe('canceled');
  expect(await bench.store.loadRun(runId)).toEqual(run);
  expect((await bench.eventsOf(runId)).at(-1)?.data).toMatchObject({
    from: 'queued',
    to: 'canceled',
    trigger: 'run.canceled',
    actor: ACTOR,
  });
});

test('a waiting run is canceled together with its question', async () => {
  const { run, question } = await bench.waiting();
  expect((await cancelIdle(bench.deps, run.run_id, ACTOR))?.status).toBe('canceled');
  expect(await bench.store.loadInteraction(question.interaction_id)).toMatchObject({
    state: 'canceled',
    resolution: { actor: ACTOR, response: null },
  });
});

test('a running run is left to its turn', async () => {
  const run = await bench.running();
  expect(await cancelIdle(bench.deps, run.run_id, ACTOR)).toBeNull();
  expect(await bench.store.loadRun(run.run_id)).toEqual(run);
});

test('canceling again returns the run and records nothing', async () => {
  const { run_id: runId } = await bench.queued();
  const first = await cancelIdle(bench.deps, runId, ACTOR);
  expect(await cancelIdle(bench.deps, runId, undefined)).toEqual(first);
  expect(await bench.store.loadRun(runId)).toEqual(first);
});

test('two cancellations at once both succeed, and one is recorded', async () => {
  const { run } = await bench.waiting();
  const runs = await Promise.all([1, 2, 3].map(() => cancelIdle(bench.deps, run.run_id, ACTOR)));
  expect(runs.map((one) => one?.status)).toEqual(['canceled', 'canceled', 'canceled']);
  const events = await bench.eventsOf(run.run_id);
  expect(events.filter(({ data }) => (data as { to?: string }).to === 'canceled')).toHaveLength(1);
});

test('a cancellation at the same time as a reply always ends the run', async () => {
  const { run, question } = await bench.waiting();
  const reply = { interaction_id: question.interaction_id, response: 'x' };
  const [replied, canceled] = await Promise.allSettled([
    replyToRun(bench.deps, run.run_id, { reply, actor: null }),
    cancelIdle(bench.deps, run.run_id, ACTOR),
  ]);
  expect(canceled).toMatchObject({ status: 'fulfilled', value: { status: 'canceled' } });
  const latest = await bench.store.loadLatestInteraction(run.run_id);
  expect(latest?.state).toBe(replied.status === 'fulfilled' ? 'answered' : 'canceled');
});

test.each(['succeeded', 'failed'] as const)('a %s run is refused', async (status) => {
  const { run_id: runId } = await bench.end(await bench.running(), status);
  expect(await refusal(cancelIdle(bench.deps, runId, ACTOR), 'RUN_ENDED')).toContain(`has already ${status}`);
});

test('an unknown run is refused', async () => {
  await refusal(cancelIdle(bench.deps, 'run_unknown', ACTOR), 'RUN_NOT_FOUND');
});
