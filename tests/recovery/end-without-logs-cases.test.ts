// The end of a run whose logs are on another host: the session that its journal names is stored, if none is.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { draft } from '../../src/rasp/draft.js';
import { endWithoutLogs } from '../../src/recovery/end-without-logs.js';
import type { RunRecord } from '../../src/store/store.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { CommandBench } from '../support/command-bench.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const ERROR = { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', message: 'The host stopped.' } as const;
const ANN = { kind: 'token', name: 'ann' } as const;

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const end = (run: RunRecord) => endWithoutLogs(bench.deps, run, { event: 'restart.reconcile_failed', error: ERROR });

async function bind(run: RunRecord, session = SESSION): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  void writer.add([draft('agent.message.final', { text: 'Hello.' })]);
  void writer.add([draft('lifecycle.session.bound', { session_id: session, handle_type: 'session_id' })]);
  await writer.flush();
  return writer.run;
}

test('the run fails with the error, or is canceled by the one who asked', async () => {
  const [failed, canceled] = [await bench.running(), await bench.running()];
  await end(failed);
  expect(await bench.store.loadRun(failed.run_id)).toMatchObject({ status: 'failed', error: ERROR });
  await endWithoutLogs(bench.deps, canceled, { event: 'run.canceled', actor: ANN });
  const { data } = (await bench.eventsOf(canceled.run_id)).at(-1) ?? {};
  expect(data).toMatchObject({ to: 'canceled', actor: ANN });
  expect(data).not.toHaveProperty('error');
});

test('the session is the one that the journal names', async () => {
  const run = await bind(await bench.running());
  await end(run);
  expect(await bench.store.loadHandle(run.request_id)).toEqual({
    engine: 'codex',
    handle_type: 'session_id',
    handle_value: SESSION,
    cwd: run.spec.cwd,
    home: run.spec.home,
    created_at_attempt: 1,
  });
});

test('no session is stored if the journal names none', async () => {
  const run = await bench.running();
  await end(run);
  expect(await bench.store.loadHandle(run.request_id)).toBeNull();
});

test('no session is stored if one is', async () => {
  const { run: waiting } = await bench.waiting();
  const queued = await bench.apply(waiting, { event: 'interaction.reply.accepted' });
  const run = await bind(await bench.apply(queued, { event: 'turn.started' }), '02a1e065-6fe8-7fd2-a5f7-dea3d46cd55c');
  await end(run);
  expect(await bench.store.loadHandle(run.request_id)).toMatchObject({ handle_value: SESSION });
  const types = (await bench.eventsOf(run.run_id)).map(({ event }) => event.type);
  expect(types.filter((type) => type === 'lifecycle.session.confirmed')).toHaveLength(1);
});

test('no session is stored if it ended with its process', async () => {
  bench.stub.resume = { resumes: false, problem: 'it cannot' };
  const deps = { ...bench.deps, mayNeedProcess: true };
  const request = { engine: 'codex-app-server', prompt: 'Build it.', execution_mode: 'interactive' } as const;
  const queued = await createRun(deps, request, {});
  const run = await bind(await bench.apply(queued, { event: 'turn.started' }));
  expect(run.spec.sticky).toBe(true);
  await end(run);
  expect((await bench.store.loadRun(run.run_id))?.status).toBe('failed');
  expect(await bench.store.loadHandle(run.request_id)).toBeNull();
});
