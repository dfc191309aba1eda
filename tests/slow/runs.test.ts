// Whole runs: real processes of the stand-in engines, the real store, the real orchestrator.
import { readFileSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import { listMarked } from '../../src/process/process-table.js';
import type { RunRecord } from '../../src/store/store.js';
import { alterStore, isFlush } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { STAND_INS, type StandIn } from '../support/stand-in.js';

// The member in which each engine prints its session, and the argument that only a resume has.
const NAMED: Record<StandIn, { stream: 'stdout' | 'stderr'; id: RegExp; resume: (session: string) => string[] }> = {
  codex: {
    stream: 'stdout',
    id: /\{"type":"thread\.started","thread_id":"([^"]+)"\}/,
    resume: (session) => ['resume', session, 'Postgres 17'],
  },
  gemini: { stream: 'stdout', id: /"type":"init".*"session_id":"([^"]+)"/, resume: (session) => ['--resume', session] },
  iflow: {
    stream: 'stderr',
    id: /<Execution Info>[^]*"session-id": ?"([^"]+)"/,
    resume: (session) => ['--resume', session, '-p', 'Postgres 17'],
  },
  opencode: { stream: 'stdout', id: /"sessionID":"([^"]+)"/, resume: (session) => ['--session', session] },
};

async function withBench<T>(
  work: (bench: Bench, root: string) => Promise<T>,
  changes: Parameters<typeof openBench>[1] = {},
): Promise<T> {
  const root = createRoot();
  const bench = await openBench(root, changes);
  try {
    return await work(bench, root);
  } finally {
    await bench.close();
  }
}

async function run(bench: Bench, engine: string, prompt: string, rest: object = {}): Promise<RunRecord> {
  const created = await bench.orchestrator.create({
    engine,
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  await bench.orchestrator.waitUntilIdle(created.run_id);
  return expectSound(bench, created.run_id);
}

async function answer(bench: Bench, waiting: RunRecord, response: string): Promise<RunRecord> {
  const pending = await bench.data.store.loadPendingInteraction(waiting.run_id);
  await bench.orchestrator.reply(waiting.run_id, { interaction_id: pending?.interaction_id ?? '', response });
  await bench.orchestrator.waitUntilIdle(waiting.run_id);
  return expectSound(bench, waiting.run_id);
}

describe.each(STAND_INS)('%s', (engine) => {
  test('a question parks the run without a process; the answer continues the session in a new process', async () => {
    await withBench(async (bench, root) => {
      const waiting = await run(
        bench,
        engine,
        '[[ask Which database?|Postgres|SQLite]][[answer Done with it.]][[done {"ok":true}]]',
      );
      expect(waiting).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
      const pending = await bench.data.store.loadPendingInteraction(waiting.run_id);
      expect(pending?.question).toMatchObject({ kind: 'choose_one', prompt: 'Which database?' });
      const handle = await bench.data.store.loadHandle(waiting.request_id);
      expect(waiting.epoch).toBe(1);
      const ended = await answer(bench, waiting, 'Postgres');
      expect(ended.epoch).toBe(2);
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

  test('the session id the engine printed is the handle, and resume names it where the engine wants it', async () => {
    await withBench(async (bench, root) => {
      const { stream, id, resume } = NAMED[engine];
      const waiting = await run(bench, engine, '[[ask Which database?]][[done 1]]');
      const { logs } = runFolder(bench.data.path, waiting.run_id).attempt(1);
      const session = id.exec(readFileSync(logs[stream], 'utf8'))?.[1] ?? '';
      expect(await bench.data.store.loadHandle(waiting.request_id)).toMatchObject({
        engine,
        handle_type: 'session_id',
        handle_value: session,
        created_at_attempt: 1,
      });
      expect((await answer(bench, waiting, 'Postgres 17')).status).toBe('succeeded');
      const [first, second] = startsIn(root).map(({ argv }) => argv);
      const words = resume(session);
      expect(second?.slice(-words.length)).toEqual(words);
      expect(second?.filter((word) => word.includes(session))).toHaveLength(1);
      expect(second).not.toContain('--list-sessions');
      expect(first?.some((word) => ['resume', '--resume', '--session'].includes(word))).toBe(false);
    });
  });

  test('a question survives the end of all processes: after a restart its answer continues the session', async () => {
    const root = createRoot();
    const first = await openBench(root);
    const waiting = await run(first, engine, '[[ask Go on?]][[done 1]]');
    await first.close();
    const second = await openBench(root);
    expect((await expectSound(second, waiting.run_id)).status).toBe('waiting_user');
    expect((await journalOf(second, waiting.run_id)).rasp.at(-1)?.data).toMatchObject({
      from: 'waiting_user',
      to: 'waiting_user',
      trigger: 'restart.preserve_waiting',
    });
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

  test.each(['[[ask Which?]][[othersession]]', '[[ask Which?]][[refuse]]'])(
    'a resume that comes back wrong fails and keeps the stored session: %s',
    async (prompt) => {
      await withBench(async (bench) => {
        const waiting = await run(bench, engine, prompt);
        const handle = await bench.data.store.loadHandle(waiting.request_id);
        expect(await answer(bench, waiting, 'x')).toMatchObject({
          status: 'failed',
          error: { code: 'SESSION_RESUME_FAILED' },
        });
        expect(await bench.data.store.loadHandle(waiting.request_id)).toEqual(handle);
      });
    },
  );

  test('a run that hangs is canceled, and nothing of it is left', async () => {
    await withBench(async (bench, root) => {
      const { run_id: runId } = await bench.orchestrator.create({
        engine,
        prompt: '[[orphan]][[hang]]',
        execution_mode: 'interactive',
        permission: 'full',
      });
      while (startsIn(root).length === 0) await new Promise((resolve) => setImmediate(resolve));
      const canceled = await bench.orchestrator.cancel(runId, { kind: 'user', name: 'ann' });
      expect(canceled.status).toBe('canceled');
      await expectSound(bench, runId);
      expect((await journalOf(bench, runId)).rasp.at(-1)?.data.actor).toEqual({ kind: 'user', name: 'ann' });
      expect((await bench.orchestrator.cancel(runId)).status).toBe('canceled');
    });
  });
});

test('never more engines work at once than there are slots', async () => {
  await withBench(
    async (bench) => {
      const counts: number[] = [];
      bench.data.store.onCommitted(() =>
        counts.push(
          new Set(
            listMarked().flatMap(({ mark }) =>
              runs.some(({ run_id: runId }) => mark?.startsWith(`${runId}/`)) ? [mark] : [],
            ),
          ).size,
        ),
      );
      const runs: RunRecord[] = [];
      for (let count = 0; count < 6; count += 1)
        runs.push(
          await bench.orchestrator.create({ engine: 'codex', prompt: '[[answer here]][[sleep 60]][[done 1]]' }),
        );
      for (const { run_id: runId } of runs)
        expect((await bench.orchestrator.waitUntilIdle(runId)).status).toBe('succeeded');
      expect(Math.max(...counts)).toBe(2);
    },
    { settings: { slots: 2 } },
  );
});

test('an engine pauses while its output is not stored, and continues afterwards', async () => {
  const gate = new Gate();
  const held = new Gate();
  const hold = (store: Bench['data']['store']) =>
    alterStore(store, {
      append: async (change) => {
        if (isFlush(change)) {
          held.open();
          await gate.opened;
        }
        return store.append(change);
      },
    });
  await withBench(
    async (bench) => {
      const { run_id: runId } = await bench.orchestrator.create({
        engine: 'codex',
        prompt: '[[events 20000 1000]][[done 1]]',
      });
      await held.opened;
      const { stdout } = runFolder(bench.data.path, runId).attempt(1).logs;
      // Until the size stays the same for many rounds.
      for (let size = -1, rounds = 0; rounds < 20_000;) {
        const current = statSync(stdout).size;
        rounds = current === size && current > 100_000 ? rounds + 1 : 0;
        size = current;
        await new Promise((resolve) => setImmediate(resolve));
      }
      const before = statSync(stdout).size;
      gate.open();
      expect((await bench.orchestrator.waitUntilIdle(runId)).status).toBe('succeeded');
      expect(statSync(stdout).size).toBeGreaterThan(4 * before);
      await expectSound(bench, runId);
    },
    { store: hold },
  );
});
