// How a start recovers interrupted runs: nothing that their logs and files contain is lost.
import { isFlush } from '../support/altered-store.js';
import { newStatus } from '../store/conformance.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { recordedShape } from '../../bench/recorded-shapes.mjs';
import { applyRunEvent } from '../../src/journal/apply-run-event.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { NO_FACTS } from '../../src/run/guards.js';
import type { RunAppend, RunRecord, Store } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { SimulatedTime } from '../support/simulated-timers.js';
import { STAND_INS } from '../support/stand-in.js';

const MB = 1024 * 1024;
const REPORT_PEAK = fileURLToPath(new URL('../support/report-peak.mjs', import.meta.url));
const RECOVER = fileURLToPath(new URL('../support/recover-child.mjs', import.meta.url));

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

// A store that stops taking changes from the one on that the test names, until it is mended.
function failing(
  store: Store,
  isFirst: (change: RunAppend) => boolean,
): { store: Store; mend: () => void; failed: () => number } {
  let broken = false;
  let mended = false;
  let failed = 0;
  const proxy = new Proxy(store, {
    get: (target, name: keyof Store) => {
      const member = target[name];
      if (name !== 'append')
        return typeof member === 'function' ? (member as (...args: unknown[]) => unknown).bind(target) : member;
      return async (change: RunAppend) => {
        broken ||= isFirst(change);
        if (!broken || mended) return target.append(change);
        failed += 1;
        throw new Error('the disk is full');
      };
    },
  });
  return { store: proxy, mend: () => (mended = true), failed: () => failed };
}

async function waitingRun(bench: Bench, engine = 'codex') {
  const { run_id: runId } = await bench.orchestrator.create({
    engine,
    prompt: '[[ask Which database?|Postgres|SQLite]]',
    execution_mode: 'interactive',
    permission: 'full',
  });
  expect(await bench.orchestrator.settled(runId)).toMatchObject({ status: 'waiting_user' });
  return expectSound(bench, runId);
}

describe.each(STAND_INS)('%s', (engine) => {
  test('a waiting run without its session fails with SESSION_RESUME_FAILED and reports its question', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const waiting = await waitingRun(bench, engine);
    const other = await waitingRun(bench, engine);
    const pending = await bench.data.store.loadPending(waiting.run_id);
    await bench.close();
    rmSync(waiting.spec.home ?? '', { recursive: true });
    mkdirSync(waiting.spec.home ?? '');
    const again = await openBench(root);
    expect(await expectSound(again, waiting.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED', details: { unanswered: { prompt: 'Which database?' } } },
    });
    expect((await journalOf(again, waiting.run_id)).rasp.at(-1)?.data).toMatchObject({
      from: 'waiting_user',
      to: 'failed',
      trigger: 'restart.reconcile_failed',
    });
    expect(await again.data.store.loadInteraction(pending?.interaction_id ?? '')).toMatchObject({ state: 'abandoned' });
    expect((await expectSound(again, other.run_id)).status).toBe('waiting_user');
    expect((await journalOf(again, other.run_id)).rasp.at(-1)?.data).toMatchObject({
      from: 'waiting_user',
      to: 'waiting_user',
      trigger: 'restart.preserve_waiting',
    });
    await again.close();
  });

  test('a turn cut off after its question keeps question and session, and can be retried from there', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    await bench.orchestrator.close();
    const { store } = failing(bench.data.store, (change) => newStatus(change) === 'waiting_user');
    const orchestrator = await Orchestrator.open(
      { ...bench.deps, store },
      { slots: 1, recovery: { queued: 'fail' }, onFailure: () => {} },
    );
    const { run_id: runId } = await orchestrator.create({
      engine,
      prompt: '[[ask Which?]][[done 1]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await until(async () =>
      (await bench.data.store.readJournal(runId, 'rasp', { limit: 1000 })).some(
        (line) => line.includes('Which?') && line.includes('raw_ref":{'),
      ),
    );
    await orchestrator.close();
    await bench.data.close();
    const again = await openBench(root);
    expect(await expectSound(again, runId)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', details: { unanswered: { prompt: 'Which?' } } },
    });
    const retried = await again.orchestrator.retry(runId);
    expect(retried.spec.continue_from).toBe(runId);
    await again.orchestrator.settled(retried.run_id);
    // It asks again, now in a way that can be answered.
    expect(await expectSound(again, retried.run_id)).toMatchObject({ status: 'waiting_user' });
    expect((await again.data.store.loadPending(retried.run_id))?.question).toMatchObject({ prompt: 'Which?' });
    expect(startsIn(root).map(({ resumed }) => resumed)).toEqual([false, true]);
    await again.close();
  });
});

// A run as a crash leaves it: running, with a log that nobody has read.
async function cutOff(bench: Bench, log: Buffer | string): Promise<RunRecord> {
  const run = await bench.orchestrator.create({ engine: 'codex', prompt: 'go on', execution_mode: 'interactive' });
  const applied = await applyRunEvent(bench.deps, run, { event: 'turn.started', facts: NO_FACTS, epoch: 1 });
  if (!applied.applied) throw new Error('the turn has not begun');
  const { path, logs } = runFolder(bench.data.path, run.run_id).attempt(1);
  mkdirSync(path, { recursive: true });
  writeFileSync(logs.stdout, log);
  return applied.run;
}

describe('a start', () => {
  test.each([
    ['fail', 'failed'],
    ['requeue', 'succeeded'],
  ] as const)(
    'fails a running run as interrupted, and with the setting %s a queued one has %s',
    async (queued, status) => {
      const root = createRoot();
      const bench = await openBench(root, { settings: { slots: 0 } });
      const running = await cutOff(bench, 'a line\n');
      const waiting = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
      await bench.close();
      const again = await openBench(root, { settings: { recovery: { queued } } });
      await again.orchestrator.settled(waiting.run_id);
      const interrupted = { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } };
      expect(await expectSound(again, running.run_id)).toMatchObject(interrupted);
      expect((await journalOf(again, running.run_id)).rasp.at(-1)?.data).toMatchObject({
        from: 'running',
        trigger: 'restart.reconcile_failed',
      });
      expect(await expectSound(again, waiting.run_id)).toMatchObject(
        queued === 'fail' ? interrupted : { status, attempt_number: 1 },
      );
      if (queued === 'fail')
        expect((await journalOf(again, waiting.run_id)).rasp.at(-1)?.data).toMatchObject({
          from: 'queued',
          trigger: 'restart.reconcile_failed',
        });
      await again.close();
    },
  );

  test('repairs the files of an interrupted run before its end is visible', async () => {
    const root = createRoot();
    const bench = await openBench(root, { settings: { slots: 0 } });
    const { run_id: runId } = await cutOff(bench, 'a line\n');
    await bench.close();
    // As a crash leaves them: what was gathered is not in them, and nobody has ended cleanly.
    const files = ['rasp.jsonl', 'fcmp.jsonl'].map((name) => join(runFolder(bench.data.path, runId).path, name));
    for (const file of files) writeFileSync(file, '');
    rmSync(join(bench.data.path, 'exports.clean'));
    const seen: string[][] = [];
    const again = await openBench(root, {
      store: (store) => {
        // After whoever writes the files has heard of it, too.
        store.onCommitted(
          ({ status }) =>
            status === 'failed' && queueMicrotask(() => seen.push(files.map((file) => readFileSync(file, 'utf8')))),
        );
        return store;
      },
    });
    const stored = await Promise.all(
      (['rasp', 'fcmp'] as const).map((protocol) => again.data.store.readJournal(runId, protocol, { limit: 1000 })),
    );
    expect(seen).toEqual([stored.map((lines) => lines.map((line) => `${line}\n`).join(''))]);
    await again.close();
  });

  test('works although the log of a run is unreadable: that run fails with its code, the others recover', async () => {
    const root = createRoot();
    const bench = await openBench(root, { settings: { slots: 0 } });
    const runs = [await cutOff(bench, 'one\n'), await cutOff(bench, 'two\n'), await cutOff(bench, 'three\n')] as const;
    const { stdout } = runFolder(bench.data.path, runs[1].run_id).attempt(1).logs;
    rmSync(stdout);
    mkdirSync(stdout);
    await bench.close();
    const again = await openBench(root);
    for (const run of runs)
      expect(await expectSound(again, run.run_id)).toMatchObject({
        status: 'failed',
        error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
      });
    const ended = await Promise.all(
      runs.map(
        async ({ run_id: runId }) =>
          (await journalOf(again, runId)).rasp.filter(({ event }) => event.type === 'lifecycle.turn.ended').length,
      ),
    );
    expect(ended).toEqual([1, 0, 1]);
    expect(again.failures.splice(0)).toMatchObject([{ name: 'UnsafeFileError' }]);
    await again.close();
  });

  test('keeps every waiting run waiting, even one whose session cannot be looked up, which it reports', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const runs = [await waitingRun(bench), await waitingRun(bench), await waitingRun(bench)] as const;
    await bench.close();
    const hasSession = async ({ home }: { home: string | null }) => {
      if (home === runs[1].spec.home) throw new Error('the home cannot be read');
      return true;
    };
    const again = await openBench(root, { runtime: { hasSession } });
    expect(await expectSound(again, runs[1].run_id)).toEqual(runs[1]);
    for (const run of [runs[0], runs[2]]) {
      expect((await expectSound(again, run.run_id)).status).toBe('waiting_user');
      expect((await journalOf(again, run.run_id)).rasp.at(-1)?.data).toMatchObject({
        trigger: 'restart.preserve_waiting',
      });
    }
    expect(again.failures.splice(0)).toMatchObject([{ message: 'the home cannot be read' }]);
    await again.close();
  });

  test('fails a waiting run whose session was in a process: no process outlives the host that had it', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const run = await waitingRun(bench);
    await bench.close();
    const db = await openDatabase(join(bench.data.path, 'parley.db'));
    db.exec(`UPDATE request_interactive_runtime
      SET session_handle_json = replace(session_handle_json, '"session_id"', '"process"')`);
    db.close();
    const again = await openBench(root, { runtime: { hasSession: async () => true } });
    expect(await again.data.store.loadRun(run.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED' },
    });
    await again.close();
  });

  test('recovers a run that printed 60 MB before it was cut off, in bounded memory', async () => {
    const root = createRoot();
    const bench = await openBench(root, { settings: { slots: 0 } });
    const run = await cutOff(bench, '');
    const { stdout } = runFolder(bench.data.path, run.run_id).attempt(1).logs;
    const chunk = recordedShape('codex', MB).stream;
    while (statSync(stdout).size < 60 * MB) appendFileSync(stdout, chunk);
    await bench.close();
    // A crash leaves no sign of a clean end: the exports are looked at too.
    rmSync(join(bench.data.path, 'exports.clean'));
    const child = spawn(process.execPath, ['--import', REPORT_PEAK, RECOVER, JSON.stringify({ root })], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    });
    let peak = '';
    (child.stdio[3] as Readable).on('data', (bytes: Buffer) => (peak += bytes.toString()));
    expect(await once(child, 'close')).toEqual([0, null]);
    console.log(`recovery of 60 MB: peak ${Math.round(Number.parseInt(peak, 10) / MB)} MB`);
    expect(Number.parseInt(peak, 10)).toBeGreaterThan(20 * MB);
    expect(Number.parseInt(peak, 10)).toBeLessThan(400 * MB);
    const again = await openBench(root, { settings: { slots: 0 } });
    expect(await again.data.store.loadRun(run.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    });
    await again.close();
  });
});

describe('the wish to cancel', () => {
  test('survives a crash: the run is canceled at the next start, by the same person', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    await bench.orchestrator.close();
    const actor = { kind: 'user' as const, name: 'ann' };
    const { store } = failing(bench.data.store, (change) => newStatus(change) === 'canceled');
    const orchestrator = await Orchestrator.open(
      { ...bench.deps, store },
      { slots: 1, recovery: { queued: 'fail' }, onFailure: () => {} },
    );
    const { run_id: runId } = await orchestrator.create({
      engine: 'codex',
      prompt: '[[stderr 2]][[hang]]',
      permission: 'full',
    });
    await until(() => startsIn(root).length === 1);
    void orchestrator.cancel(runId, actor).catch(() => {});
    await until(async () => (await bench.data.store.loadRun(runId))?.cancel_requested !== null);
    await orchestrator.close();
    await bench.data.close();
    const again = await openBench(root);
    const run = await expectSound(again, runId);
    expect(run).toMatchObject({ status: 'canceled', cancel_requested: { actor } });
    expect((await journalOf(again, runId)).rasp.at(-1)?.data).toMatchObject({ trigger: 'run.canceled', actor });
    await again.close();
  });
});

describe('a store that fails and works again', () => {
  test('while a turn runs: the run fails once that can be stored, with every byte its engine printed', async () => {
    const bench = await openBench(createRoot());
    await bench.orchestrator.close();
    const time = new SimulatedTime();
    const broken = failing(bench.data.store, (change) => isFlush(change));
    const orchestrator = await Orchestrator.open(
      { ...bench.deps, store: broken.store, timers: time.createTimers(), clock: time.clock },
      { slots: 1, recovery: { queued: 'fail' }, onFailure: () => {} },
    );
    const { run_id: runId } = await orchestrator.create({ engine: 'codex', prompt: '[[events 2000 20]][[done 1]]' });
    await until(async () => {
      time.advance(1000);
      return broken.failed() > 2;
    });
    expect((await bench.data.store.loadRun(runId))?.status).toBe('running');
    broken.mend();
    await until(async () => {
      time.advance(1000);
      return (await bench.data.store.loadRun(runId))?.status === 'failed';
    });
    await orchestrator.settled(runId);
    expect(await expectSound(bench, runId)).toMatchObject({ error: { code: 'INTERNAL' } });
    await orchestrator.close();
    await bench.data.close();
  });

  test('before a turn has started: the run stays queued and runs later', async () => {
    const bench = await openBench(createRoot());
    await bench.orchestrator.close();
    const time = new SimulatedTime();
    const broken = failing(bench.data.store, (change) => newStatus(change) === 'running');
    const orchestrator = await Orchestrator.open(
      { ...bench.deps, store: broken.store, timers: time.createTimers(), clock: time.clock },
      { slots: 1, recovery: { queued: 'fail' }, onFailure: () => {} },
    );
    const { run_id: runId } = await orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
    await until(() => broken.failed() > 0);
    expect((await bench.data.store.loadRun(runId))?.status).toBe('queued');
    broken.mend();
    await until(async () => {
      time.advance(100);
      return (await bench.data.store.loadRun(runId))?.status !== 'queued';
    });
    await orchestrator.settled(runId);
    expect((await expectSound(bench, runId)).status).toBe('succeeded');
    await orchestrator.close();
    await bench.data.close();
  });
});

describe('deleting', () => {
  test('an ended run removes its rows and folder; an unended run, or one whose session continues, stays', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const waiting = await waitingRun(bench);
    const folderOf = (runId: string) => runFolder(bench.data.path, runId).path;
    await expect(bench.orchestrator.delete(waiting.run_id)).rejects.toMatchObject({ code: 'RUN_NOT_ENDED' });
    await expect(bench.orchestrator.delete('run_none')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    await bench.orchestrator.cancel(waiting.run_id);
    const { run_id: heir } = await bench.orchestrator.continueFrom(waiting.run_id, { prompt: '[[done 1]]' });
    await bench.orchestrator.settled(heir);
    await expect(bench.orchestrator.delete(waiting.run_id)).rejects.toMatchObject({ code: 'SESSION_IN_USE' });
    await expectSound(bench, waiting.run_id);
    await bench.orchestrator.delete(heir);
    await bench.orchestrator.delete(waiting.run_id);
    for (const runId of [heir, waiting.run_id]) {
      expect(await bench.data.store.loadRun(runId)).toBeNull();
      expect(statSync(folderOf(runId), { throwIfNoEntry: false })).toBeUndefined();
    }
    await bench.close();
  });
});

describe('admission', () => {
  test('a new run is refused while the queue is full, and an answer never is', async () => {
    const bench = await openBench(createRoot(), { settings: { slots: 1 }, queueLimit: 1 });
    const waiting = await waitingRun(bench);
    const { run_id: running } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[hang]]',
      permission: 'full',
    });
    await until(async () => (await bench.data.store.loadRun(running))?.status === 'running');
    const { run_id: queued } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
    await expect(bench.orchestrator.create({ engine: 'codex', prompt: '[[done 2]]' })).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    });
    const pending = await bench.data.store.loadPending(waiting.run_id);
    expect(
      await bench.orchestrator.reply(waiting.run_id, {
        interaction_id: pending?.interaction_id ?? '',
        response: 'SQLite',
      }),
    ).toMatchObject({ status: 'queued' });
    await bench.orchestrator.cancel(running);
    expect(await bench.orchestrator.settled(queued)).toMatchObject({ status: 'succeeded' });
    await bench.orchestrator.settled(waiting.run_id);
    await bench.close();
  });
});

test('the result of a run is also a file, named by an event with its hash', async () => {
  const bench = await openBench(createRoot());
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done {"n":[1,"é"]}]]' });
  await bench.orchestrator.settled(runId);
  await expectSound(bench, runId);
  const path = join(runFolder(bench.data.path, runId).path, 'result.json');
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ n: [1, 'é'] });
  const written = (await journalOf(bench, runId)).rasp.find(({ event }) => event.type === 'artifact.result.written');
  expect(written?.data).toMatchObject({
    path: 'result.json',
    bytes: statSync(path).size,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  await bench.close();
});

test('a Gemini session id other than the chosen one is reported, and the handle is the id in the output', async () => {
  const other = '0e5c7e2a-0000-4000-8000-00000000000f';
  const lines = [
    { type: 'init', session_id: other, model: 'm' },
    { type: 'result', status: 'success', stats: {} },
  ];
  const script = `for (const line of ${JSON.stringify(lines)}) console.log(JSON.stringify(line))`;
  const bench = await openBench(createRoot(), {
    runtime: { findProgram: async () => [process.execPath, '-e', script, '--'], hasSession: async () => true },
  });
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'gemini', prompt: 'x' });
  const run = await bench.orchestrator.settled(runId);
  const warnings = (await journalOf(bench, runId)).rasp.filter(({ data }) => data['code'] === 'SESSION_ID_CHANGED');
  expect(warnings).toMatchObject([{ data: { message: expect.stringContaining(`the output names ${other}`) } }]);
  expect((await bench.data.store.loadHandle(run.request_id))?.handle_value).toBe(other);
  await bench.close();
});
