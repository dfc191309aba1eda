// Turns with an irregular end: a part of Parley failed, or no process runs them any more. They are ended from their
// logs, and question, session and every byte are kept.
import { newStatus } from '../store/conformance.js';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { applyRunEvent } from '../../src/journal/apply-run-event.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { DRAIN_LOOK_MS } from '../../src/process/drain.js';
import { listMarked } from '../../src/process/process-table.js';
import { systemTimers } from '../../src/process/timers.js';
import { NO_FACTS } from '../../src/run/guards.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { RunRecord } from '../../src/store/store.js';
import { alterStore, failOnce, isFlush } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { SimulatedTime } from '../support/simulated-timers.js';
import { STAND_INS } from '../support/stand-in.js';

// A machine on which the lookup of sessions fails.
const BLIND = { hasSession: () => Promise.reject(new Error('the home cannot be read')) };

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

// Called when its engine has started and exited.
function engineOver(root: string): Promise<void> {
  return until(
    () =>
      startsIn(root).length > 0 &&
      !startsIn(root).some(({ env }) => listMarked().some(({ mark }) => mark === env['PARLEY_TURN'])),
  );
}

async function create(bench: Bench, engine: string, prompt: string, rest: object = {}): Promise<RunRecord> {
  return bench.orchestrator.create({ engine, prompt, execution_mode: 'interactive', permission: 'full', ...rest });
}

// Ended with this code, its turn reported as ended, question and session kept.
async function expectKept(bench: Bench, runId: string, code: string): Promise<RunRecord> {
  const run = await expectSound(bench, runId);
  expect(run).toMatchObject({ status: 'failed', error: { code, details: { unanswered: { prompt: 'Which?' } } } });
  const { rasp } = await journalOf(bench, runId);
  expect(rasp.filter(({ event }) => event.type === 'lifecycle.turn.ended')).toHaveLength(1);
  const printed = rasp
    .filter(({ raw_ref: ref }) => ref !== null)
    .map(({ event, data, raw_ref: ref }) => JSON.stringify([event.type, data, ref]));
  expect(printed).toEqual([...new Set(printed)]);
  expect((await bench.data.store.loadHandle(run.request_id))?.handle_type).toBe('session_id');
  return run;
}

describe.each(STAND_INS)('%s', (engine) => {
  test.each([
    ['an event of its output', isFlush],
    ['its question', (change) => newStatus(change) === 'waiting_user'],
  ] as [string, typeof isFlush][])(
    'a turn of which %s could not be stored is ended from its logs and can be retried',
    async (_what, isMeant) => {
      const root = createRoot();
      const bench = await openBench(root, { store: (store) => failOnce(store, isMeant, () => engineOver(root)) });
      const { run_id: runId } = await create(bench, engine, '[[utf8]][[stderr 2]][[ask Which?]][[done 1]]');
      await bench.orchestrator.waitUntilIdle(runId);
      await expectKept(bench, runId, 'INTERNAL');
      expect(bench.failures.splice(0)).toMatchObject([{ message: 'the disk is full' }]);
      const { run_id: retried } = await bench.orchestrator.continueFrom(runId, { prompt: 'MySQL, please' });
      await bench.orchestrator.waitUntilIdle(retried);
      expect(await expectSound(bench, retried)).toMatchObject({ status: 'succeeded', result: 1 });
      expect(startsIn(root).map(({ resumed }) => resumed)).toEqual([false, true]);
      await bench.close();
    },
  );
});

test('a silent engine is ended at once when its earlier output cannot be stored', async () => {
  const root = createRoot();
  const time = new SimulatedTime();
  const bench = await openBench(root, {
    clock: time.clock,
    timers: time.createTimers(),
    store: (store) => failOnce(store, isFlush),
  });
  const { run_id: runId } = await create(bench, 'codex', '[[answer here]][[hang]]');
  await bench.orchestrator.waitUntilIdle(runId);
  expect(await expectSound(bench, runId)).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
  expect(bench.failures.splice(0)).toHaveLength(1);
  await bench.close();
});

test('a turn whose engine left a process holding its output is still judged, and the process is reported', async () => {
  const root = createRoot();
  // Its own session, without our mark, and its parent has exited before any check.
  const keeper =
    `const { pid } = require('child_process').spawn('sleep', ['1000'], { detached: true, env: {}, ` +
    `stdio: ['ignore', 'inherit', 'ignore'] });`;
  const lines = [
    { type: 'thread.started', thread_id: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c' },
    { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: '{"ask_user":{"prompt":"Which?"}}' } },
    { type: 'turn.completed', usage: {} },
  ];
  const script =
    `${keeper} require('fs').writeFileSync(${JSON.stringify(join(root, 'pid'))}, String(pid)); for ` +
    `(const line of ${JSON.stringify(lines)}) console.log(JSON.stringify(line)); process.exit(0)`;
  const timers = { set: (ms: number, fire: () => void) => systemTimers.set(ms === DRAIN_LOOK_MS ? 0 : ms, fire) };
  const bench = await openBench(root, {
    timers,
    runtime: { findProgram: async () => [process.execPath, '-e', script, '--'], hasSession: async () => true },
  });
  const { run_id: runId } = await create(bench, 'codex', 'go on');
  await bench.orchestrator.waitUntilIdle(runId);
  process.kill(Number(readFileSync(join(root, 'pid'), 'utf8')), 'SIGKILL');
  expect(await expectSound(bench, runId)).toMatchObject({ status: 'waiting_user' });
  expect((await bench.data.store.loadPendingInteraction(runId))?.question).toMatchObject({ prompt: 'Which?' });
  const { rasp } = await journalOf(bench, runId);
  expect(rasp.filter(({ event }) => event.type === 'lifecycle.turn.ended')).toHaveLength(1);
  expect(
    rasp.filter(({ event }) => event.type === 'diagnostic.engine.warning').map(({ data }) => data['message']),
  ).toEqual([expect.stringContaining('still holds the output')]);
  await bench.close();
});

test('a line of unknown type read from the logs is reported with the version that the turn started with', async () => {
  const root = createRoot();
  const lines = [
    { type: 'thread.started', thread_id: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c' },
    { type: 'thread.dreaming' },
  ];
  const script =
    `for (const line of ${JSON.stringify(lines)}) console.log(JSON.stringify(line)); ` +
    `require('fs').writeFileSync(${JSON.stringify(join(root, 'printed'))}, '')`;
  const versions = ['0.166.0', '0.999.0'];
  const runtime = {
    findProgram: async () => [process.execPath, '-e', script, '--'],
    versionOf: () => versions.shift(),
    hasSession: async () => true,
  };
  const bench = await openBench(root, {
    runtime,
    store: (store) => failOnce(store, isFlush, () => until(() => existsSync(join(root, 'printed')))),
  });
  const { run_id: runId } = await create(bench, 'codex', 'go on');
  await bench.orchestrator.waitUntilIdle(runId);
  expect(await expectSound(bench, runId)).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
  const { rasp } = await journalOf(bench, runId);
  expect(
    rasp.filter(({ data }) => data['code'] === 'UNKNOWN_EVENT_TYPE').map(({ data }) => data['engine_version']),
  ).toEqual(['0.166.0']);
  expect(bench.failures.splice(0)).toHaveLength(1);
  await bench.close();
});

test('a session that cannot be looked up counts as missing, and no failure of our own is reported', async () => {
  const bench = await openBench(createRoot(), { runtime: BLIND });
  const asked = await create(bench, 'codex', '[[ask Which?]]');
  await bench.orchestrator.waitUntilIdle(asked.run_id);
  expect(await expectSound(bench, asked.run_id)).toMatchObject({
    status: 'failed',
    error: { code: 'SESSION_RESUME_FAILED', details: { unanswered: { prompt: 'Which?' } } },
  });
  const done = await create(bench, 'codex', '[[done 1]]');
  await bench.orchestrator.waitUntilIdle(done.run_id);
  expect((await expectSound(bench, done.run_id)).status).toBe('succeeded');
  expect(await bench.data.store.loadHandle(done.request_id)).toBeNull();
  // Nor if the logs are all that is left of a turn.
  const broken = await openBench(createRoot(), {
    runtime: BLIND,
    store: (store) => failOnce(store, (change) => newStatus(change) === 'succeeded'),
  });
  const lost = await create(broken, 'codex', '[[done 1]]');
  await broken.orchestrator.waitUntilIdle(lost.run_id);
  expect(await expectSound(broken, lost.run_id)).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
  expect(broken.failures.splice(0)).toHaveLength(1);
  await broken.close();
  await bench.close();
});

test('a running run without a worker is canceled from its logs', async () => {
  const actor = { kind: 'user' as const, name: 'ann' };
  let looks = 0;
  const loadRun = (store: Bench['data']['store']) => async (runId: string) => {
    looks += 1;
    if (looks > 100) throw new Error('it looks again and again');
    return store.loadRun(runId);
  };
  const bench = await openBench(createRoot(), {
    settings: { slots: 0 },
    store: (store) => alterStore(store, { loadRun: loadRun(store) }),
  });
  const run = await create(bench, 'codex', 'go on');
  await applyRunEvent(bench.deps, run, { event: 'turn.started', facts: NO_FACTS, epoch: 1 });
  expect(await bench.orchestrator.cancel(run.run_id, actor)).toMatchObject({ status: 'canceled' });
  await expectSound(bench, run.run_id);
  const { rasp } = await journalOf(bench, run.run_id);
  expect(rasp.slice(-2).map(({ event }) => event.type)).toEqual(['lifecycle.turn.ended', 'lifecycle.state.changed']);
  expect(rasp.at(-1)?.data).toMatchObject({ trigger: 'run.canceled', actor });
  await bench.close();
});

test('an answer whose session is not stored any more is kept, and no engine is started for it', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: runId, request_id: requestId } = await create(bench, 'codex', '[[ask Which?]][[done 1]]');
  await bench.orchestrator.waitUntilIdle(runId);
  const pending = await bench.data.store.loadPendingInteraction(runId);
  const db = await openDatabase(join(bench.data.path, 'parley.db'));
  db.exec(`UPDATE request_interactive_runtime SET session_handle_json = NULL WHERE request_id = '${requestId}'`);
  db.close();
  await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: 'Postgres' });
  await bench.orchestrator.waitUntilIdle(runId);
  expect(await expectSound(bench, runId, ['rows: the session differs from the one in the events'])).toMatchObject({
    status: 'failed',
    attempt_number: 2,
    error: { code: 'SESSION_RESUME_FAILED' },
  });
  expect(startsIn(root)).toHaveLength(1);
  expect(await bench.data.store.loadInteraction(pending?.interaction_id ?? '')).toMatchObject({
    state: 'answered',
    resolution: { response: 'Postgres' },
  });
  await bench.close();
});

describe('the end of Parley', () => {
  // iFlow names its session only at the end of a turn.
  test.each(STAND_INS.filter((engine) => engine !== 'iflow'))(
    'in the first turn of %s keeps question and session, and the run is continued after',
    async (engine) => {
      const root = createRoot();
      const bench = await openBench(root);
      const { run_id: runId } = await create(bench, engine, '[[answer {"ask_user":{"prompt":"Which?"}}]][[hang]]');
      const log = join(runFolder(bench.data.path, runId).attempt(1).path, 'stdout.log');
      await until(() => startsIn(root).length === 1 && readFileSync(log, 'utf8').includes('Which?'));
      await bench.close();
      const again = await openBench(root);
      await expectKept(again, runId, 'ORCHESTRATOR_RESTART_INTERRUPTED');
      const { run_id: heir } = await again.orchestrator.continueFrom(runId, { prompt: '[[done 1]]' });
      await again.orchestrator.waitUntilIdle(heir);
      expect((await expectSound(again, heir)).status).toBe('succeeded');
      expect(startsIn(root).map(({ resumed }) => resumed)).toEqual([false, true]);
      await again.close();
    },
  );

  test.each(['right after it was created', 'while its program is looked for'])(
    '%s leaves a run queued where queued runs are kept, and its attempt has not begun',
    async (moment) => {
      const root = createRoot();
      const settings = { recovery: { queued: 'requeue' } } as const;
      const [asked, recovered] = [new Gate(), new Gate()];
      const findProgram = async () => {
        asked.open();
        await recovered.opened;
        return ['/nowhere/codex'];
      };
      const bench = await openBench(root, { settings, runtime: { findProgram } });
      const created = await create(bench, 'codex', '[[done 1]]');
      if (moment === 'while its program is looked for') await asked.opened;
      const closed = bench.close();
      recovered.open();
      await closed;
      const idle = await openBench(root, { settings: { ...settings, slots: 0 } });
      expect(await expectSound(idle, created.run_id)).toEqual(created);
      await idle.close();
      const again = await openBench(root, { settings });
      await again.orchestrator.waitUntilIdle(created.run_id);
      expect(await expectSound(again, created.run_id)).toMatchObject({
        status: 'succeeded',
        attempt_number: 1,
        epoch: 1,
      });
      await again.close();
    },
  );
});
