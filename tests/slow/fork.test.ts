// A new run that starts with a copy of another's conversation, while that one waits, runs or has ended.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RaspEvent } from '../../src/rasp/event.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { openForReading } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';

const ADA = { kind: 'user', name: 'ada' } as const;
// Each run has its own text and its own command.
const say = (engine: string, text: string) => (engine === 'codex' ? `[[answer ${text}]]` : `[[say ${text}]]`);
const run = (engine: string, command: string) => (engine === 'codex' ? `[[tool ${command}]]` : `[[run ${command}]]`);
// An engine's stored conversation of a run, including its copied history.
const storedBy = ({ spec }: RunRecord) => {
  const folder = join(spec.home ?? '', '.codex', 'sessions');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
};

async function play(bench: Bench, engine: string, prompt: string, rest: object = {}): Promise<RunRecord> {
  const { run_id: runId } = await bench.orchestrator.create({
    engine,
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  return waitUntilIdle(bench, runId);
}

async function waitUntilIdle(bench: Bench, runId: string): Promise<RunRecord> {
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId);
}

async function fork(bench: Bench, { run_id: source }: RunRecord, prompt: string): Promise<RunRecord> {
  return waitUntilIdle(bench, (await bench.orchestrator.fork(source, { prompt }, ADA)).run_id);
}

async function reply(bench: Bench, { run_id: runId }: RunRecord, response: string): Promise<RunRecord> {
  const pending = await bench.data.store.loadPendingInteraction(runId);
  await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response });
  return waitUntilIdle(bench, runId);
}

const sessionOf = async (bench: Bench, { request_id: id }: RunRecord) =>
  (await bench.data.store.loadHandle(id))?.handle_value;
const homeOf = ({ spec }: RunRecord) => spec.home ?? '';
const dataOf = (rasp: readonly RaspEvent[], type: string) =>
  rasp.filter(({ event }) => event.type === type).map(({ data }) => data);

describe.each(['codex', 'codex-app-server'])('%s', (engine) => {
  test('a waiting run is forked: new session and home, same folder; the run is then answered as usual', async () => {
    const bench = await openBench(createRoot());
    const waiting = await play(bench, engine, say(engine, 'Which one?'), {
      labels: { team: 'a' },
      model: 'm1',
      runtime_options: { max_attempt: 7 },
    });
    const session = await sessionOf(bench, waiting);
    const forked = await fork(bench, waiting, 'Try it so.');
    expect(forked).toMatchObject({
      status: 'waiting_user',
      attempt_number: 1,
      spec: {
        engine,
        execution_mode: 'interactive',
        cwd: waiting.spec.cwd,
        permission: 'full',
        labels: { team: 'a' },
        model: 'm1',
        runtime_options: { max_attempt: 7 },
        fork_from: { run_id: waiting.run_id },
      },
    });
    expect(homeOf(forked)).not.toBe(homeOf(waiting));
    const { rasp } = await journalOf(bench, forked.run_id);
    expect(dataOf(rasp, 'lifecycle.run.created')).toMatchObject([{ fork_from: waiting.run_id, actor: ADA }]);
    // A first turn: nothing is resumed.
    expect(dataOf(rasp, 'lifecycle.turn.started')).toMatchObject([{ resumed: false }]);
    const copy = await sessionOf(bench, forked);
    expect(copy).toMatch(/^[0-9a-f-]{36}$/);
    expect(copy).not.toBe(session);
    expect(dataOf(rasp, 'lifecycle.session.bound')).toMatchObject([{ session_id: copy }]);
    for (const words of ['Which one?', 'Try it so.']) expect(storedBy(forked)).toContain(words);

    expect(await reply(bench, waiting, 'That one.')).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(storedBy(waiting)).toContain('That one.');
    expect(storedBy(waiting)).not.toContain('Try it so.');
    expect(storedBy(forked)).not.toContain('That one.');
    expect(await sessionOf(bench, waiting)).toBe(session);
    // The fork continues with its own.
    expect(await reply(bench, forked, 'Go on.')).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(storedBy(forked)).toContain('Go on.');
    expect(
      dataOf((await journalOf(bench, forked.run_id)).rasp, 'lifecycle.session.bound')
        .map(({ session_id: id }) => id)
        .every((id) => id === copy),
    ).toBe(true);
    await bench.close();
  });

  test('a run that has ended is forked, and its fork too, when the others are deleted', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const cwd = join(root, 'work');
    mkdirSync(cwd);
    const ended = await play(bench, engine, say(engine, 'One.'), { execution_mode: 'auto', cwd });
    const first = await fork(bench, ended, say(engine, 'Two.'));
    expect(first).toMatchObject({ status: 'succeeded', result: 'Two.', spec: { cwd } });
    // No run uses the home of another.
    await bench.orchestrator.delete(ended.run_id);
    const second = await fork(bench, first, say(engine, 'Three.'));
    expect(second).toMatchObject({
      status: 'succeeded',
      result: 'Three.',
      spec: { fork_from: { run_id: first.run_id } },
    });
    await bench.orchestrator.delete(first.run_id);
    const { run_id: next } = await bench.orchestrator.continueFrom(second.run_id, { prompt: 'The end.' });
    expect(await waitUntilIdle(bench, next)).toMatchObject({ status: 'succeeded' });
    for (const words of ['One.', 'Two.', 'Three.', 'The end.']) expect(storedBy(second)).toContain(words);
    await bench.close();
  });

  test('a run is forked while it is at work in a later turn', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const waiting = await play(bench, engine, say(engine, 'Which one?'));
    const pending = await bench.data.store.loadPendingInteraction(waiting.run_id);
    const enough = join(root, 'enough');
    await bench.orchestrator.reply(waiting.run_id, {
      interaction_id: pending?.interaction_id ?? '',
      response: `${run(engine, `until test -e ${enough}; do sleep 0.02; done`)}[[done 1]]`,
    });
    const forked = await fork(bench, waiting, `${run(engine, `touch ${enough}`)}[[done 2]]`);
    expect(forked).toMatchObject({ status: 'succeeded', result: 2 });
    expect(await waitUntilIdle(bench, waiting.run_id)).toMatchObject({
      status: 'succeeded',
      result: 1,
      attempt_number: 2,
    });
    await bench.close();
  });

  test('a fork whose source was deleted before its start fails clearly, and starts nothing', async () => {
    const root = createRoot();
    const first = await openBench(root);
    const ended = await play(first, engine, '[[done 1]]', { cwd: root });
    await first.close();
    // An orchestrator that runs no turns: the fork stays queued.
    const idle = await openBench(root, { settings: { runsTurns: false } });
    const { run_id: runId } = await idle.orchestrator.fork(ended.run_id, { prompt: '[[done 2]]' });
    await idle.orchestrator.delete(ended.run_id);
    await idle.close();
    const starts = startsIn(root).length;
    const bench = await openBench(root, { settings: { recovery: { queued: 'requeue' } } });
    const failed = await waitUntilIdle(bench, runId);
    expect(failed).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED', message: expect.stringContaining(ended.run_id) as string },
    });
    expect(await sessionOf(bench, failed)).toBeUndefined();
    // A retry has the same history, never a conversation without its beginning.
    const again = await waitUntilIdle(bench, (await bench.orchestrator.retry(runId)).run_id);
    expect(again).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED' },
      spec: { fork_from: { run_id: ended.run_id }, prompt: '[[done 2]]' },
    });
    expect(startsIn(root)).toHaveLength(starts);
    await bench.close();
  });

  test('without a stored session there is nothing to copy', async () => {
    const bench = await openBench(createRoot());
    const ended = await play(bench, engine, '[[done 1]]');
    const request = { prompt: '[[done 2]]', request_id: 'mine' };
    const forked = await waitUntilIdle(bench, (await bench.orchestrator.fork(ended.run_id, request)).run_id);
    rmSync(join(homeOf(ended), '.codex', 'sessions'), { recursive: true });
    await expect(bench.orchestrator.fork(ended.run_id, { prompt: 'x' })).rejects.toMatchObject({ code: 'NO_SESSION' });
    // A repeated request returns the same run, whatever happened to the session.
    expect((await bench.orchestrator.fork(ended.run_id, request)).run_id).toBe(forked.run_id);
    await bench.close();
  });
});

test('a run in its first turn, or whose session exists only in its process, has nothing to copy', async () => {
  const root = createRoot();
  const bench = await openBench(root, {
    sticky: true,
    runtime: { knownResume: () => ({ resumes: false, problem: null }) },
  });
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[hang]]' });
  await expect(bench.orchestrator.fork(runId, { prompt: 'x' })).rejects.toMatchObject({ code: 'NO_SESSION' });
  await bench.orchestrator.cancel(runId);
  const sticky = await play(bench, 'codex-app-server', '[[ask Which?]]');
  expect(sticky).toMatchObject({ status: 'waiting_user', spec: { sticky: true } });
  await expect(bench.orchestrator.fork(sticky.run_id, { prompt: 'x' })).rejects.toMatchObject({ code: 'NO_SESSION' });
  await bench.orchestrator.cancel(sticky.run_id);
  await bench.close();
});

test.each(['gemini', 'iflow', 'opencode'])('%s cannot be forked, and says so', async (engine) => {
  const bench = await openBench(createRoot());
  const ended = await play(bench, engine, '[[done 1]]');
  await expect(bench.orchestrator.fork(ended.run_id, { prompt: 'x' })).rejects.toMatchObject({
    code: 'FORK_UNSUPPORTED',
    message: expect.stringContaining(engine) as string,
  });
  expect(await bench.data.store.listRuns({ limit: 10 })).toHaveLength(1);
  await bench.close();
});

test('one request id is one fork, however often sent; for another run, prompt or continue it is refused', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const one = await play(bench, 'codex', '[[done 1]]');
  const other = await play(bench, 'codex', '[[done 1]]');
  const request = { prompt: '[[done 2]]', request_id: 'mine' };
  const forks = await Promise.all(Array.from({ length: 5 }, () => bench.orchestrator.fork(one.run_id, request)));
  expect(new Set(forks.map(({ run_id: runId }) => runId)).size).toBe(1);
  await waitUntilIdle(bench, forks[0]?.run_id ?? '');
  const conflict = { code: 'REQUEST_ID_CONFLICT' };
  await expect(bench.orchestrator.fork(other.run_id, request)).rejects.toMatchObject(conflict);
  await expect(bench.orchestrator.fork(one.run_id, { ...request, prompt: 'y' })).rejects.toMatchObject(conflict);
  await expect(bench.orchestrator.continueFrom(one.run_id, request)).rejects.toMatchObject(conflict);
  await expect(bench.orchestrator.fork('run_none', { prompt: 'x' })).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  await expect(bench.orchestrator.fork(one.run_id, { prompt: ' ' })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  expect(startsIn(root)).toHaveLength(3);
  await bench.close();
});

test('the own folder of a run stays while a fork works in it, even when retention would delete the run', async () => {
  const bench = await openBench(createRoot());
  const ended = await play(bench, 'codex', '[[done 1]]');
  const waiting = await fork(bench, ended, '[[ask Which?]][[done 2]]');
  expect(waiting).toMatchObject({ status: 'waiting_user', spec: { cwd: ended.spec.cwd } });
  await expect(bench.orchestrator.delete(ended.run_id)).rejects.toMatchObject({
    code: 'SESSION_IN_USE',
    message: expect.stringContaining(waiting.run_id) as string,
  });
  expect(await bench.orchestrator.sweep({ max_bytes: 0 })).toEqual([]);
  expect(await reply(bench, waiting, 'That one.')).toMatchObject({ status: 'succeeded', result: 2 });
  await bench.orchestrator.delete(ended.run_id);
  await bench.close();
});

test('a fork keeps nobody from continuing its source, and many forks of one run go side by side', async () => {
  const bench = await openBench(createRoot());
  const ended = await play(bench, 'codex', '[[answer One.]]', { execution_mode: 'auto' });
  const forks = await Promise.all(
    Array.from({ length: 4 }, (_, index) => bench.orchestrator.fork(ended.run_id, { prompt: `Way ${index}` })),
  );
  const heir = await bench.orchestrator.continueFrom(ended.run_id, { prompt: 'Go on.' });
  for (const { run_id: runId } of [...forks, heir])
    expect(await waitUntilIdle(bench, runId)).toMatchObject({
      status: 'succeeded',
      result: expect.stringContaining('Earlier turns: 1.') as string,
    });
  await bench.close();
});

test('verify finds a changed row of a copied run, session or home; it ignores a deleted source', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const source = await play(bench, 'codex', '[[answer Hello.]][[done {}]]');
  const other = await play(bench, 'codex', '[[answer Another.]][[done {}]]');
  const forked = await fork(bench, source, '[[done {}]]');
  await bench.close();
  const { home, fork_from: from, ...rest } = forked.spec;
  const findWith = async (changes: object | undefined): Promise<string[]> => {
    const db = await openDatabase(join(root, 'data', 'parley.db'));
    db.prepare('UPDATE runs SET spec_json = ? WHERE run_id = ?').run(
      JSON.stringify({ ...rest, home, fork_from: changes && { ...from, ...changes } }),
      forked.run_id,
    );
    db.close();
    const reader = await openForReading(join(root, 'data'));
    try {
      const run = await reader?.store.loadRun(forked.run_id);
      return reader && run
        ? (await verifyRun(reader.store, join(root, 'data'), run))
            .filter(({ ok }) => !ok)
            .map(({ name, finding }) => `${name}: ${finding}`)
        : ['the run is gone'];
    } finally {
      await reader?.close();
    }
  };
  expect(await findWith({})).toEqual([]);
  expect(await findWith(undefined)).toEqual(['rows: the request in the row of the run differs from its first event']);
  expect(await findWith({ run_id: other.run_id })).toEqual([
    'rows: the request in the row of the run differs from its first event',
  ]);
  expect(await findWith({ session: 'ffffffff-0000' })).toEqual([
    `rows: the copied session ffffffff-0000 never belonged to its source run ${source.run_id}`,
  ]);
  expect(await findWith({ home: other.spec.home })).toEqual([
    `rows: the copied conversation is not in the home of its source run ${source.run_id}`,
  ]);
  await findWith({});
  const again = await openBench(root);
  await again.orchestrator.delete(source.run_id);
  await again.close();
  expect(await findWith({})).toEqual([]);
});
