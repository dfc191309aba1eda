// Crashes of the process are counted for the runs that it was about to start or ran: after the second one a run is not
// started again.
import { describe, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import type { RunRecord } from '../../src/store/store.js';
import { Gate } from '../support/gate.js';
import { createRoot, expectSound, openBench, startsIn, type Bench } from '../support/orchestrated.js';

type Changes = NonNullable<Parameters<typeof openBench>[1]>;

const REQUEUE: Changes = { settings: { recovery: { queued: 'requeue' } } };
// The preparation of a turn never ends.
const STUCK: Changes = { ...REQUEUE, runtime: { findProgram: () => new Promise<never>(() => {}) } };

// As if the process had died: nothing is written any more, and the lock is free.
const crash = (bench: Bench) => bench.data.close();
const load = async ({ data }: Bench, { run_id: id }: Pick<RunRecord, 'run_id'>) =>
  (await data.store.loadRun(id)) as RunRecord;

async function untilStarting(bench: Bench, root: string): Promise<void> {
  let marked = false;
  // The mark is stored before any preparation: a second start of the same process sees it.
  await expect
    .poll(async () => {
      const { openDatabase } = await import('../../src/store/sqlite/open-database.js');
      const db = await openDatabase(`${root}/data/parley.db`, { readOnly: true });
      marked = (db.prepare('SELECT COUNT(*) AS runs FROM runs WHERE at_work = 1').get() as { runs: number }).runs === 1;
      db.close();
      return marked;
    })
    .toBe(true);
  expect(bench.failures).toEqual([]);
}

describe('a queued run that is started again after a crash (recovery.queued: requeue)', () => {
  test('starts a second time, and fails with HOST_CRASHED_TWICE instead of starting a third time', async () => {
    const root = createRoot();
    const first = await openBench(root, STUCK);
    const run = await first.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
    await untilStarting(first, root);
    await crash(first);
    const second = await openBench(root, STUCK);
    expect(await load(second, run)).toMatchObject({ status: 'queued', crashes: 1 });
    await untilStarting(second, root);
    await crash(second);
    const third = await openBench(root, REQUEUE);
    await third.orchestrator.waitUntilIdle(run.run_id);
    expect(await expectSound(third, run.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', details: { reason: 'HOST_CRASHED_TWICE', crashes: 2 } },
    });
    expect(startsIn(root)).toEqual([]);
    await third.close();
  });

  test('that waited in the queue when the process crashed has no part in the crash', async () => {
    const root = createRoot();
    const first = await openBench(root, { ...STUCK, settings: { recovery: { queued: 'requeue' }, slots: 1 } });
    const [, second] = [
      await first.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' }),
      await first.orchestrator.create({ engine: 'codex', prompt: '[[done 2]]' }),
    ];
    await untilStarting(first, root);
    await crash(first);
    const again = await openBench(root, REQUEUE);
    expect(await again.orchestrator.waitUntilIdle(second.run_id)).toMatchObject({ status: 'succeeded', crashes: 0 });
    await again.close();
  });

  test('is not counted when the process stops cleanly before the turn begins', async () => {
    const root = createRoot();
    const gate = new Gate();
    const first = await openBench(root, { ...REQUEUE, runtime: { findProgram: () => gate.opened.then(() => null) } });
    const run = await first.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
    await untilStarting(first, root);
    const closed = first.close();
    gate.open();
    await closed;
    const again = await openBench(root, REQUEUE);
    expect(await again.orchestrator.waitUntilIdle(run.run_id)).toMatchObject({ crashes: 0, status: 'succeeded' });
    await again.close();
  });

  test('counts anew after a turn that ended with a question', async () => {
    const root = createRoot();
    const first = await openBench(root, STUCK);
    const run = await first.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Which?]][[done 1]]',
      execution_mode: 'interactive',
    });
    await untilStarting(first, root);
    await crash(first);
    const second = await openBench(root, REQUEUE);
    expect(await second.orchestrator.waitUntilIdle(run.run_id)).toMatchObject({ status: 'waiting_user', crashes: 0 });
    await second.close();
  });
});

async function crashInTurn(root: string, retryOf?: string): Promise<RunRecord> {
  const bench = await openBench(root);
  const run = await createRun(
    bench.deps,
    { engine: 'codex', prompt: '[[hang]]' },
    retryOf === undefined ? {} : { retryOf },
  );
  bench.orchestrator.play();
  await expect.poll(async () => (await load(bench, run)).status).toBe('running');
  await crash(bench);
  const again = await openBench(root);
  const ended = await expectSound(again, run.run_id);
  await again.close();
  return ended;
}

describe('a running run', () => {
  test(
    'fails as interrupted after its first crash; tried again by Parley, the second crash ends it',
    { timeout: 60_000 },
    async () => {
      const root = createRoot();
      const first = await crashInTurn(root);
      expect(first).toMatchObject({
        status: 'failed',
        crashes: 1,
        error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
      });
      expect(first.error).not.toHaveProperty('details');
      const second = await crashInTurn(root, first.run_id);
      expect(second).toMatchObject({
        status: 'failed',
        crashes: 2,
        error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', details: { reason: 'HOST_CRASHED_TWICE' } },
      });
    },
  );
});

test('with the default settings the start of a turn costs no write of its own', async () => {
  const marks: string[] = [];
  const bench = await openBench(createRoot(), {
    store: (store) =>
      new Proxy(store, {
        get: (target, name: keyof typeof store) => {
          if (name === 'markStarting') marks.push(name);
          const own = target[name];
          return typeof own === 'function' ? (own as (...args: unknown[]) => unknown).bind(target) : own;
        },
      }),
  });
  const run = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
  expect(await bench.orchestrator.waitUntilIdle(run.run_id)).toMatchObject({ status: 'succeeded' });
  expect(marks).toEqual([]);
  await bench.close();
});
