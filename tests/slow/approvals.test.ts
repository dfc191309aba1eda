// Approvals with the rehearsal as the asking engine: only a decision is an answer, silence declines, and a permission
// is never carried over.
import { expect, test } from 'vitest';
import type { Json } from '../../src/kernel/json.js';
import { RequestError } from '../../src/run/request-error.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, type Bench } from '../support/orchestrated.js';
import { REHEARSAL } from '../support/rehearsal.js';
import { SimulatedTime } from '../support/simulated-timers.js';

const APPROVE = '[[approve rm -r build]]';
const TIMEOUT_SEC = 600;

async function withBench(work: (bench: Bench, time: SimulatedTime) => Promise<void>): Promise<void> {
  const time = new SimulatedTime();
  const bench = await openBench(createRoot(), {
    clock: time.clock,
    timers: time.createTimers(),
    runtime: { findProgram: async () => REHEARSAL },
  });
  try {
    await work(bench, time);
  } finally {
    await bench.close();
  }
}

async function waitUntilIdle(bench: Bench, { run_id: runId }: RunRecord): Promise<RunRecord> {
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId);
}

// A run that waits for an approval.
async function askApproval(
  bench: Bench,
  prompt: string,
  rest: object = {},
): Promise<{ waiting: RunRecord; pending: InteractionRecord }> {
  const waiting = await waitUntilIdle(
    bench,
    await bench.orchestrator.create({
      engine: 'rehearsal',
      prompt,
      execution_mode: 'interactive',
      permission: 'full',
      ...rest,
    }),
  );
  expect(waiting.status).toBe('waiting_user');
  const pending = (await bench.data.store.loadPendingInteraction(waiting.run_id)) as InteractionRecord;
  expect(pending.question).toMatchObject({ kind: 'approval' });
  return { waiting, pending };
}

// The effects of the commands that needed an approval.
async function outcomesOf(bench: Bench, run: RunRecord): Promise<unknown[]> {
  const { rasp } = await journalOf(bench, run.run_id);
  return rasp.filter(({ event }) => event.type === 'tool.call.completed').map(({ data }) => data.status);
}

test('a reply that is no decision is refused with APPROVAL_INVALID, and the approval stays pending', async () => {
  await withBench(async (bench) => {
    const { waiting, pending } = await askApproval(bench, APPROVE);
    const replies: Json[] = [
      'approve',
      'yes',
      true,
      1,
      null,
      [],
      ['approve'],
      {},
      { decision: 'yes' },
      { decision: 'Approve' },
      { decision: ' approve' },
      { decision: true },
      { decision: null },
      { decision: ['approve'] },
      { decision: { decision: 'approve' } },
      { Decision: 'approve' },
      { approve: true },
    ];
    for (const response of replies) {
      const reply = bench.orchestrator.reply(waiting.run_id, { interaction_id: pending.interaction_id, response });
      await expect(reply, JSON.stringify(response)).rejects.toSatisfy(
        (error) => error instanceof RequestError && error.code === 'APPROVAL_INVALID',
      );
    }
    expect(await bench.data.store.loadRun(waiting.run_id)).toEqual(waiting);
    expect(await bench.data.store.loadPendingInteraction(waiting.run_id)).toEqual(pending);
  });
});

test.each([
  ['approve', 'completed', 'succeeded'],
  ['approve_for_session', 'completed', 'succeeded'],
  ['decline', 'declined', 'succeeded'],
  // The agent stops there and asks for further instructions.
  ['cancel', 'declined', 'waiting_user'],
])('the decision %s is taken: the command is %s, and the run has %s', async (decision, outcome, status) => {
  await withBench(async (bench) => {
    const { waiting, pending } = await askApproval(bench, `${APPROVE}[[done 1]]`);
    await bench.orchestrator.reply(waiting.run_id, {
      interaction_id: pending.interaction_id,
      response: { decision, note: 'so be it' },
    });
    expect(await waitUntilIdle(bench, waiting)).toMatchObject({ status, attempt_number: 2 });
    expect(await outcomesOf(bench, waiting)).toEqual([outcome]);
    expect(await bench.data.store.loadInteraction(pending.interaction_id)).toMatchObject({
      state: 'answered',
      resolution: { response: { decision, note: 'so be it' } },
    });
  });
});

test.each(['engine_judgement', 'use_default'])(
  'silence declines and never approves, also with the policy %s',
  async (policy) => {
    await withBench(async (bench, time) => {
      const { waiting, pending } = await askApproval(bench, `${APPROVE}[[done 1]]`, {
        runtime_options: {
          interactive_require_user_reply: false,
          session_timeout_sec: TIMEOUT_SEC,
          auto_decide_policy: policy,
        },
      });
      time.advance(TIMEOUT_SEC * 1000);
      while ((await bench.data.store.loadPendingInteraction(waiting.run_id)) !== null)
        await new Promise((resolve) => setImmediate(resolve));
      expect(await waitUntilIdle(bench, waiting)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
      expect(await bench.data.store.loadInteraction(pending.interaction_id)).toMatchObject({
        state: 'auto_decided',
        resolution: { response: { decision: 'decline' }, actor: null },
      });
      const { rasp } = await journalOf(bench, waiting.run_id);
      expect(
        rasp.filter(({ event }) => event.type === 'interaction.auto_decide.timeout').map(({ data }) => data),
      ).toMatchObject([{ policy: 'decline', response: { decision: 'decline' } }]);
      expect(await outcomesOf(bench, waiting)).toEqual(['declined']);
    });
  },
);

test('a strict run is not even declined by silence', async () => {
  await withBench(async (bench, time) => {
    const { waiting, pending } = await askApproval(bench, APPROVE, {
      runtime_options: { session_timeout_sec: TIMEOUT_SEC },
    });
    time.advance(100 * TIMEOUT_SEC * 1000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await waitUntilIdle(bench, waiting)).toEqual(waiting);
    expect(await bench.data.store.loadPendingInteraction(waiting.run_id)).toEqual(pending);
  });
});

test('a run that failed after an approval is retried with its prompt, and asks for the approval again', async () => {
  await withBench(async (bench) => {
    const prompt = `${APPROVE}[[fail]]`;
    const { waiting, pending } = await askApproval(bench, prompt);
    await bench.orchestrator.reply(waiting.run_id, {
      interaction_id: pending.interaction_id,
      response: { decision: 'approve' },
    });
    expect(await waitUntilIdle(bench, waiting)).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_TURN_FAILED' },
    });
    const retried = await waitUntilIdle(bench, await bench.orchestrator.retry(waiting.run_id));
    expect(retried).toMatchObject({
      status: 'waiting_user',
      attempt_number: 1,
      spec: { prompt, continue_from: waiting.run_id },
    });
    expect((await bench.data.store.loadPendingInteraction(retried.run_id))?.question).toMatchObject({
      kind: 'approval',
    });
    expect(await outcomesOf(bench, retried)).toEqual([]);
  });
});
