// Many runs on the app-server of the real Codex at once, and runs that are canceled at any moment.
import { expect, test } from 'vitest';
import { RequestError } from '../../src/run/request-error.js';
import { isTerminal } from '../../src/run/statechart.js';
import type { RunRecord } from '../../src/store/store.js';
import { processesOf } from '../support/orchestrated.js';
import { seededRandom } from '../support/seeded-random.js';
import type { RealBench } from './real-bench.js';
import { ASKS, dataOf, expectSameParsed, linesIn, memoryOf, openResidents } from './real-resident.js';

test('twenty concurrent runs with an approval each all succeed, isolated from each other', async () => {
  const count = 20;
  const bench = await openResidents({ settings: { slots: count, residents: { parkAfterMs: 3_600_000, max: count } } });
  const startedAt = Date.now();
  const numbers = Array.from({ length: count }, (_, index) => index);
  const asked = await Promise.all(
    numbers.map((n) =>
      bench.play(
        `I am number ${n}. [[answer Hello from ${n}.]] [[approve echo ${n} >> side-${n}.txt]] [[done ${n}]]`,
        ASKS,
      ),
    ),
  );
  const waited = Date.now();
  expect(asked.map(({ status }) => status)).toEqual(numbers.map(() => 'waiting_user'));
  expect(bench.orchestrator.residents).toBe(count);
  const memory = asked.map(({ run_id: runId }) => memoryOf(runId)).reduce((sum, each) => sum + each, 0);
  const ended = await Promise.all(asked.map(({ run_id: runId }) => bench.reply(runId, { decision: 'approve' })));
  console.log(
    `${count} runs at once: ${waited - startedAt} ms until all waited for approval (${memory} MB), ` +
      `${Date.now() - waited} ms from the answers to the end of all`,
  );
  expect(ended.map(({ status, result }) => [status, result])).toEqual(numbers.map((n) => ['succeeded', n]));
  for (const n of numbers) expect(linesIn(bench.cwd, `side-${n}.txt`)).toEqual([String(n)]);
  for (const { body } of bench.model.requests)
    expect(new Set(JSON.stringify(body).match(/I am number \d+/g))).toHaveLength(1);
  for (const [n, { run_id: runId }] of asked.entries()) {
    const events = await bench.events(runId);
    expect(dataOf(events, 'agent.message.final').map(({ text }) => text)).toContain(`Hello from ${n}.`);
    expect(
      JSON.stringify(events)
        .match(/side-\d+\.txt/g)
        ?.every((name) => name === `side-${n}.txt`),
    ).toBe(true);
    expect(processesOf(runId)).toEqual([]);
    expectSameParsed(bench.data.path, runId, events);
  }
  expect(bench.orchestrator.residents).toBe(0);
});

// Waits until so many events of the run are stored or it has ended; approves its requests on the way.
async function playUpTo(bench: RealBench, runId: string, events: number): Promise<void> {
  const watch = bench.orchestrator.wakeups.watch(runId);
  try {
    for (;;) {
      const { version } = watch;
      const run = (await bench.data.store.loadRun(runId)) as RunRecord;
      if (run.heads.rasp_seq >= events || isTerminal(run.status)) return;
      if (run.status === 'waiting_user') {
        const { interaction_id: id } = await bench.pending(runId);
        await bench.orchestrator.reply(runId, { interaction_id: id, response: { decision: 'approve' } });
      }
      await watch.changed(version);
    }
  } finally {
    watch.close();
  }
}

async function cancelAt(bench: RealBench, n: number, moment: number): Promise<string> {
  const { run_id: runId } = await bench.create(
    `[[answer Some words.]] [[tool echo begun]] [[approve sleep 0.2; echo ${n} >> side-${n}.txt]] [[tool sleep ` +
      `0.1]] [[done ${n}]]`,
    ASKS,
  );
  await playUpTo(bench, runId, moment);
  // If the run has ended a little earlier, this is reported.
  const late = await bench.orchestrator.cancel(runId).then(
    () => null,
    (error: unknown) => error,
  );
  if (late !== null) expect([n, moment, late instanceof RequestError && late.code]).toEqual([n, moment, 'RUN_ENDED']);
  const run = await bench.waitUntilIdle(runId);
  expect([n, moment, run.status]).toEqual([n, moment, late === null ? 'canceled' : 'succeeded']);
  expect(linesIn(bench.cwd, `side-${n}.txt`).length).toBeLessThanOrEqual(1);
  expect(processesOf(runId)).toEqual([]);
  expectSameParsedIfAny(bench, runId, await bench.events(runId));
  return run.status;
}

function expectSameParsedIfAny(
  bench: RealBench,
  runId: string,
  events: Awaited<ReturnType<RealBench['events']>>,
): void {
  if (events.some(({ source }) => source.parser === 'codex_app_server'))
    expectSameParsed(bench.data.path, runId, events);
}

// As soon as the question is stored, while the turn that asked has not quite ended.
async function untilAsked(bench: RealBench, runId: string): Promise<string> {
  const watch = bench.orchestrator.wakeups.watch(runId);
  try {
    for (;;) {
      const { version } = watch;
      const pending = await bench.data.store.loadPendingInteraction(runId);
      if (pending) return pending.interaction_id;
      await watch.changed(version);
    }
  } finally {
    watch.close();
  }
}

test.each(['asked', 'answered'])(
  'canceled in the moment in which it has %s, a run leaves no process',
  async (moment) => {
    const bench = await openResidents();
    const { run_id: runId } = await bench.create('[[approve echo done >> side.txt]] [[done 1]]', ASKS);
    const id = await untilAsked(bench, runId);
    if (moment === 'answered')
      await bench.orchestrator.reply(runId, { interaction_id: id, response: { decision: 'approve' } });
    await bench.orchestrator.cancel(runId);
    expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'canceled' });
    expect(bench.orchestrator.residents).toBe(0);
  },
);

test('canceled at 50 points around and in a command and an approval, no run is stuck, no process left', async () => {
  const bench = await openResidents({ settings: { slots: 4 } });
  const random = seededRandom(11);
  const startedAt = Date.now();
  // A run that nothing interrupts has 74 events.
  const moments = Array.from({ length: 50 }, () => 1 + random(76));
  const outcomes: string[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let n = next++; n < moments.length; n = next++) outcomes.push(await cancelAt(bench, n, moments[n] ?? 0));
    }),
  );
  expect(outcomes).toHaveLength(50);
  expect(new Set(outcomes)).toEqual(new Set(['canceled', 'succeeded']));
  expect(bench.orchestrator.residents).toBe(0);
  expect(bench.failures).toEqual([]);
  console.log(
    `50 cancels: ${outcomes.filter((status) => status === 'canceled').length} canceled, ` +
      `${outcomes.filter((status) => status === 'succeeded').length} too late, ${Date.now() - startedAt} ms`,
  );
});
