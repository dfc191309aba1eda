// recovery.running="retry": a run that a stop of Parley interrupted fails as before, and one new run repeats it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { applyRunEvent } from '../../src/journal/apply-run-event.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import type { RecoverySettings } from '../../src/recovery/recover.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import { NO_FACTS } from '../../src/run/guards.js';
import type { RunRecord } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { createSite, parley } from '../support/command.js';
import { createRoot, expectSound, openBench, type Bench } from '../support/orchestrated.js';
import { startServer } from '../support/served-process.js';

const RETRY: RecoverySettings = { queued: 'fail', running: 'retry' };
const INTERRUPTED = { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } };

// A run after a crash: running, without a process.
async function cutOff(
  bench: Bench,
  { engine = 'codex', before = [], ...spec }: { engine?: string; before?: readonly RaspDraft[]; retryOf?: string } = {},
): Promise<RunRecord> {
  const run = await bench.orchestrator.create({ engine, prompt: '[[done 1]]', labels: { team: 'a' }, ...spec });
  const applied = await applyRunEvent(bench.deps, run, {
    event: 'turn.started',
    facts: NO_FACTS,
    epoch: 1,
    before,
  });
  if (!applied.applied) throw new Error('the turn has not begun');
  return applied.run;
}

async function retriesOf(bench: Bench, runId: string): Promise<RunRecord[]> {
  return (await bench.data.store.listRuns({ limit: 100 })).filter(({ spec }) => spec.retry_of === runId);
}

async function interrupt(root: string, options: Parameters<typeof cutOff>[1] = {}): Promise<RunRecord> {
  const bench = await openBench(root, { settings: { slots: 0 } });
  const run = await cutOff(bench, options);
  await bench.close();
  return run;
}

describe('after a start with recovery.running="retry"', () => {
  test('an interrupted run has failed, and one linked run repeats it, also after more starts', async () => {
    const root = createRoot();
    const { run_id: id } = await interrupt(root);
    for (let start = 0; start < 3; start += 1) {
      const bench = await openBench(root, { settings: { recovery: RETRY } });
      const [retry, ...others] = await retriesOf(bench, id);
      expect(others).toEqual([]);
      await bench.orchestrator.waitUntilIdle(retry?.run_id ?? '');
      expect(await expectSound(bench, retry?.run_id ?? '')).toMatchObject({
        status: 'succeeded',
        spec: { engine: 'codex', prompt: '[[done 1]]', labels: { team: 'a' } },
      });
      const failed = await expectSound(bench, id);
      expect(failed).toMatchObject(INTERRUPTED);
      expect(failed.error?.message).toContain('recovery.running');
      await bench.close();
    }
  });

  test('a crash of the recovery itself creates no second retry and loses none', async () => {
    const root = createRoot();
    const { run_id: id } = await interrupt(root);
    for (const moment of ['before', 'after'] as const) {
      // Recovers nothing by itself.
      const bench = await openBench(root, {
        settings: { slots: 0 },
        store: (store) => alterStore(store, { listRunIds: async () => [] }),
      });
      const { store } = bench.data;
      const crashing = alterStore(store, {
        append: async (change) => {
          if (change.create === undefined) return store.append(change);
          if (moment === 'after') await store.append(change);
          throw new Error('the process is gone');
        },
      });
      // The data stored before the end counts as done.
      await Orchestrator.open(
        { ...bench.deps, store: crashing },
        { slots: 0, recovery: RETRY, onFailure: () => {} },
      ).then(
        (late) => late.close(),
        () => {},
      );
      await bench.close();
    }
    const again = await openBench(root, { settings: { recovery: RETRY } });
    const retries = await retriesOf(again, id);
    expect(retries).toHaveLength(1);
    await again.orchestrator.waitUntilIdle(retries[0]?.run_id ?? '');
    expect(await again.data.store.loadRun(retries[0]?.run_id ?? '')).toMatchObject({ status: 'succeeded' });
    await again.close();
  });

  test('a retry that is interrupted as well is not repeated', async () => {
    const root = createRoot();
    const { run_id: id } = await interrupt(root);
    const first = await openBench(root, { settings: { recovery: RETRY, slots: 0 } });
    const [retry] = await retriesOf(first, id);
    if (!retry) throw new Error('there is no retry');
    await applyRunEvent(first.deps, retry, { event: 'turn.started', facts: NO_FACTS, epoch: 1 });
    await first.close();
    const second = await openBench(root, { settings: { recovery: RETRY } });
    expect(await expectSound(second, retry.run_id)).toMatchObject(INTERRUPTED);
    expect(await retriesOf(second, retry.run_id)).toEqual([]);
    expect(await second.data.store.listRuns({ limit: 10 })).toHaveLength(2);
    await second.close();
  });

  test('a run whose approval was handed over in the interrupted turn is not repeated', async () => {
    const applied = draft('interaction.approval.applied', {
      interaction_id: 'int_1',
      decision: 'approve',
      digest: 'x',
      applied_at: '2026-01-01T00:00:00.000Z',
    });
    // Each in a root of its own: opening the second bench would already fail the run of the first.
    for (const [engine, before, retries] of [
      ['codex-app-server', [applied], 0],
      ['codex-app-server', [], 1],
      ['claude', [applied], 0],
      ['claude', [], 1],
    ] as const) {
      const root = createRoot();
      const { run_id: id } = await interrupt(root, { engine, before });
      const bench = await openBench(root, { settings: { recovery: RETRY, slots: 0 } });
      expect(await bench.data.store.loadRun(id)).toMatchObject(INTERRUPTED);
      expect(await retriesOf(bench, id)).toHaveLength(retries);
      await bench.close();
    }
  });

  test('a run that somebody wanted canceled is canceled and not repeated', async () => {
    const root = createRoot();
    const run = await interrupt(root);
    const wishing = await openBench(root, {
      settings: { slots: 0 },
      store: (store) => alterStore(store, { listRunIds: async () => [] }),
    });
    await new TurnWriter(
      { store: wishing.data.store, clock: systemClock, timers: systemTimers },
      run,
      () => {},
    ).recordCancel({ at: systemClock.now(), actor: null });
    await wishing.close();
    const bench = await openBench(root, { settings: { recovery: RETRY } });
    expect(await expectSound(bench, run.run_id)).toMatchObject({ status: 'canceled' });
    expect(await retriesOf(bench, run.run_id)).toEqual([]);
    await bench.close();
  });

  test('a run that was only queued fails as before, and names the setting that keeps it', async () => {
    const root = createRoot();
    const bench = await openBench(root, { settings: { slots: 0 } });
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: 'x' });
    await bench.close();
    const again = await openBench(root, { settings: { recovery: RETRY } });
    const failed = await expectSound(again, id);
    expect(failed).toMatchObject(INTERRUPTED);
    expect(failed.error?.message).toContain('recovery.queued');
    expect(await retriesOf(again, id)).toEqual([]);
    await again.close();
  });

  test('by default nothing is repeated', async () => {
    const root = createRoot();
    const { run_id: id } = await interrupt(root);
    const bench = await openBench(root);
    expect(await expectSound(bench, id)).toMatchObject(INTERRUPTED);
    expect(await bench.data.store.listRuns({ limit: 10 })).toHaveLength(1);
    await bench.close();
  });
});

test('a turn that a stop ends after the grace period is repeated in its session at the next start', async () => {
  const root = createRoot();
  const bench = await openBench(root, { settings: { recovery: RETRY } });
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[say Working]][[hang]]',
    permission: 'full',
  });
  await expect
    .poll(async () =>
      (await bench.data.store.readJournal(id, 'rasp', { limit: 1000 })).some((line) =>
        line.includes('lifecycle.session.bound'),
      ),
    )
    .toBe(true);
  expect(await bench.orchestrator.close()).toEqual({ turns: 1, queued: 0 });
  expect(await expectSound(bench, id)).toMatchObject(INTERRUPTED);
  const [retry] = await retriesOf(bench, id);
  expect(retry).toMatchObject({ status: 'queued', spec: { continue_from: id, retry_of: id } });
  await bench.data.close();
  const again = await openBench(root, { settings: { recovery: RETRY } });
  await expect.poll(async () => (await again.data.store.loadRun(retry?.run_id ?? ''))?.status).toBe('running');
  await again.orchestrator.cancel(retry?.run_id ?? '');
  await again.close();
});

test('a server drains at SIGTERM: it refuses replies and new work, finishes turns and reports the rest', async () => {
  const site = createSite();
  mkdirSync(site.data, { recursive: true });
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ slots: 1, shutdown_grace_sec: 120 }));
  const server = await startServer(site);
  const { run_id: waiting } = await server.client.create({
    engine: 'rehearsal',
    prompt: '[[ask Which?]][[done 1]]',
    execution_mode: 'interactive',
  });
  await expect.poll(async () => (await server.client.get(waiting)).status).toBe('waiting_user');
  const { interaction_id: question } = await server.client.interaction(waiting);
  const { run_id: running } = await server.client.create({ engine: 'rehearsal', prompt: '[[say Working]][[hang]]' });
  const { run_id: queued } = await server.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await expect.poll(async () => (await server.client.get(running)).fcmp_seq).toBeGreaterThan(2);
  server.child.kill('SIGTERM');
  await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(503);
  const post = async (path: string, body: object) => {
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return [
      response.status,
      ((await response.json()) as { error: { code: string } }).error.code,
      response.headers.get('retry-after'),
    ];
  };
  const refusal = [503, 'SHUTTING_DOWN', '5'];
  expect(await post(`/v1/runs/${waiting}/interaction/reply`, { interaction_id: question, response: 'x' })).toEqual(
    refusal,
  );
  expect(await post('/v1/runs', { engine: 'rehearsal', prompt: 'x' })).toEqual(refusal);
  // A command gets the same error, and not that the data directory is in use.
  expect(await parley(site, ['reply', waiting, 'x'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is shutting down') as string,
  });
  // Existing data can still be read, and the question is still open.
  expect((await server.client.get(running)).status).toBe('running');
  expect((await server.client.interaction(waiting)).state).toBe('pending');
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.ended;
  expect(code).toBe(0);
  expect(stderr).toContain(
    'Interrupted 1 running turn and 1 queued run. Set recovery.queued to \\"requeue\\" in config.json to keep ' +
      'queued runs. Set recovery.running to \\"retry\\" in config.json to repeat interrupted runs.',
  );
  const again = await startServer(site);
  expect(await again.client.get(running)).toMatchObject(INTERRUPTED);
  expect(await again.client.get(queued)).toMatchObject(INTERRUPTED);
  await again.client.reply(waiting, { interaction_id: question, response: 'x' });
  await expect.poll(async () => (await again.client.get(waiting)).status).toBe('succeeded');
  again.child.kill('SIGTERM');
  expect((await again.ended).stderr).not.toContain('Interrupted');
});
