// Whole runs: real processes of the stand-in engines, the real store, the real orchestrator.
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { STAND_INS } from '../support/stand-in.js';

async function withBench<T>(work: (bench: Bench, root: string) => Promise<T>, changes: Parameters<typeof openBench>[1] = {}): Promise<T> {
  const root = createRoot();
  const bench = await openBench(root, changes);
  try {
    return await work(bench, root);
  } finally {
    await bench.close();
  }
}

async function run(bench: Bench, engine: string, prompt: string, rest: object = {}): Promise<RunRecord> {
  const created = await bench.orchestrator.create({ engine, prompt, execution_mode: 'interactive', permission: 'full', ...rest });
  await bench.orchestrator.settled(created.run_id);
  return expectSound(bench, created.run_id);
}

async function answer(bench: Bench, waiting: RunRecord, response: string): Promise<RunRecord> {
  const pending = await bench.data.store.loadPending(waiting.run_id);
  await bench.orchestrator.reply(waiting.run_id, { interaction_id: pending?.interaction_id ?? '', response });
  await bench.orchestrator.settled(waiting.run_id);
  return expectSound(bench, waiting.run_id);
}

describe.each(STAND_INS)('%s', (engine) => {
  test('a question parks the run without a process, and the answer goes on in a new process with the same session', async () => {
    await withBench(async (bench, root) => {
      const waiting = await run(bench, engine, '[[ask Which database?|Postgres|SQLite]][[answer Done with it.]][[done {"ok":true}]]');
      expect(waiting).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
      const pending = await bench.data.store.loadPending(waiting.run_id);
      expect(pending?.question).toMatchObject({ kind: 'choose_one', prompt: 'Which database?' });
      const handle = await bench.data.store.loadHandle(waiting.request_id);
      const ended = await answer(bench, waiting, 'Postgres');
      expect(ended).toMatchObject({ status: 'succeeded', attempt_number: 2, result: { ok: true } });
      const starts = startsIn(root);
      expect(starts).toHaveLength(2);
      expect(starts[0]?.pid).not.toBe(starts[1]?.pid);
      expect(starts[1]).toMatchObject({ resumed: true, session: handle?.handle_value });
      expect(await bench.data.store.loadHandle(waiting.request_id)).toEqual(handle);
      const { rasp } = await journalOf(bench, waiting.run_id);
      expect([...new Set(rasp.map((event) => event.attempt_number))]).toEqual([1, 2]);
    });
  });

  test('a question survives the end of everything: it is there after a restart, and its answer continues the session', async () => {
    const root = createRoot();
    const first = await openBench(root);
    const waiting = await run(first, engine, '[[ask Go on?]][[done 1]]');
    await first.close();
    const second = await openBench(root);
    expect((await expectSound(second, waiting.run_id)).status).toBe('waiting_user');
    expect(await answer(second, waiting, 'yes')).toMatchObject({ status: 'succeeded', result: 1 });
    expect(startsIn(root)).toHaveLength(2);
    await second.close();
  });

  test.each([
    ['[[answer Fine.]][[done 7]]', 'auto', 'succeeded', null],
    ['[[answer Fine.]]', 'auto', 'succeeded', null],
    ['[[answer Fine.]]', 'interactive', 'waiting_user', null],
    ['[[ask Which?]]', 'auto', 'failed', 'AUTO_MODE_CANNOT_ASK'],
    ['[[fail]]', 'interactive', 'failed', 'ENGINE_TURN_FAILED'],
    ['[[crash]]', 'interactive', 'failed', 'ENGINE_EXITED'],
    ['[[exit0]]', 'interactive', 'failed', 'COMPLETION_UNKNOWN'],
    ['[[ask Which?]][[nosession]]', 'interactive', 'waiting_user', null],
    ['[[nosession]][[ask Which?]]', 'interactive', 'failed', 'SESSION_RESUME_FAILED'],
  ])('%s in %s mode ends as %s %s', async (prompt, mode, status, code) => {
    await withBench(async (bench) => {
      const ended = await run(bench, engine, prompt, { execution_mode: mode });
      expect([ended.status, ended.error?.code ?? null]).toEqual([status, code]);
    });
  });

  test.each(['[[ask Which?]][[othersession]]', '[[ask Which?]][[refuse]]'])('a resume that comes back wrong fails and keeps the stored session: %s', async (prompt) => {
    await withBench(async (bench) => {
      const waiting = await run(bench, engine, prompt);
      const handle = await bench.data.store.loadHandle(waiting.request_id);
      expect(await answer(bench, waiting, 'x')).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
      expect(await bench.data.store.loadHandle(waiting.request_id)).toEqual(handle);
    });
  });

  test('a run that hangs is canceled, and nothing of it is left', async () => {
    await withBench(async (bench, root) => {
      const { run_id: runId } = await bench.orchestrator.create({ engine, prompt: '[[orphan]][[hang]]', execution_mode: 'interactive', permission: 'full' });
      while (startsIn(root).length === 0) await new Promise((resolve) => setImmediate(resolve));
      const canceled = await bench.orchestrator.cancel(runId, { kind: 'user', name: 'ann' });
      expect(canceled.status).toBe('canceled');
      await expectSound(bench, runId);
      expect((await journalOf(bench, runId)).rasp.at(-1)?.data.actor).toEqual({ kind: 'user', name: 'ann' });
      expect((await bench.orchestrator.cancel(runId)).status).toBe('canceled');
    });
  });
});
