// Forks on a real store: a new run from a copy of a session, whatever state the source is in.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { retryRun, type ContinueRequest } from '../../src/commands/continue-run.js';
import { forkRun } from '../../src/commands/fork-run.js';
import type { RunDefaults } from '../../src/journal/deps.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { CommandBench, refusal } from '../support/command-bench.js';

const ACTOR: Actor = { kind: 'token', name: 'ann' };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const fork = (runId: string, request: Partial<ContinueRequest> = {}, deps = bench.deps): Promise<RunRecord> =>
  forkRun(deps, runId, { request: { prompt: 'Other way.', ...request }, actor: ACTOR });

test('a fork starts from the session of the source, in the same folder, with its own home', async () => {
  const { run: source } = await bench.waiting('text', { labels: { team: 'a' }, model: 'gpt-5' });
  const handle = await bench.store.loadHandle(source.request_id);
  const run = await fork(source.run_id);
  expect(run.spec).toEqual({
    ...source.spec,
    prompt: 'Other way.',
    home: runFolder(bench.data.path, run.run_id).home,
    fork_from: { run_id: source.run_id, session: handle?.handle_value, home: source.spec.home },
  });
  expect(run.spec.continue_from).toBeUndefined();
  expect(await bench.store.loadHandle(run.request_id)).toBeNull();
  expect(await bench.store.loadRun(source.run_id)).toEqual(source);
  expect((await bench.eventsOf(run.run_id))[0]?.data).toMatchObject({ actor: ACTOR, fork_from: source.run_id });
});

const runDefaults = (): RunDefaults => ({
  mode: 'interactive',
  permission: 'full',
  model: { codex: 'other' },
  limits: { idle_timeout_sec: 1, turn_timeout_sec: 1, tool_timeout_sec: 1, silence_notice_sec: 1 },
});

test('a fork keeps the values of its source when the settings have other defaults', async () => {
  const source = await bench.end(await bench.running(), 'failed', { session: true });
  const forked = await fork(source.run_id, {}, { ...bench.deps, runDefaults });
  expect(forked.spec.model).toBeUndefined();
  // Without a session of its own, a retry copies the session again.
  const ended = await bench.end(forked, 'failed');
  const run = await retryRun({ ...bench.deps, runDefaults }, ended.run_id, { request: {}, actor: ACTOR });
  expect([run.spec.model, run.spec.fork_from]).toEqual([undefined, ended.spec.fork_from]);
});

test('several forks of one source may exist at once, also of an ended one', async () => {
  const source = await bench.end(await bench.running(), 'canceled', { session: true });
  const runs = await Promise.all([fork(source.run_id), fork(source.run_id)]);
  expect(new Set(runs.map(({ run_id: id }) => id)).size).toBe(2);
});

test('an engine that cannot copy a session is refused, with the way out', async () => {
  const source = await bench.end(await bench.running({ engine: 'gemini' }), 'succeeded', { session: true });
  expect(await refusal(fork(source.run_id), 'FORK_UNSUPPORTED')).toContain(`parley continue ${source.run_id}`);
});

test('a run without a session, or with one that was in a process, is refused', async () => {
  await refusal(fork((await bench.running()).run_id), 'NO_SESSION');
  const run = await bench.running();
  await bench.apply(run, { event: 'turn.succeeded', before: [bench.confirmSession(run, { sticky: true })] });
  await refusal(fork(run.run_id), 'NO_SESSION');
  await refusal(fork('run_unknown'), 'RUN_NOT_FOUND');
});

test.each([false, new Error('the home cannot be read')])('a session without files (%s) is refused', async (answer) => {
  const { run } = await bench.waiting();
  bench.stub.hasSession = answer;
  await refusal(fork(run.run_id), 'NO_SESSION');
  await refusal(fork(run.run_id, { request_id: 'a new key' }), 'NO_SESSION');
});

test('repeating a request returns its run, even if the session was deleted since', async () => {
  const { run: source } = await bench.waiting();
  const run = await fork(source.run_id, { request_id: 'fork-key' });
  bench.stub.hasSession = false;
  expect(await fork(source.run_id, { request_id: 'fork-key' })).toEqual(run);
  await refusal(fork(source.run_id, { request_id: 'fork-key', prompt: 'Another.' }), 'REQUEST_ID_CONFLICT');
});

test('a session whose files are on another host is not looked up here', async () => {
  const { run } = await bench.waiting();
  bench.stub.hasSession = false;
  const files = { ...bench.deps.files, isHere: async () => false };
  expect((await fork(run.run_id, {}, { ...bench.deps, files })).spec.fork_from?.run_id).toBe(run.run_id);
});
