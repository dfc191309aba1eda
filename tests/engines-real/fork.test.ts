// A fork on the real Codex, with both engines: the copy has its own id and home and the same history; the source is
// unchanged.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { openRealBench, type RealBench } from './real-bench.js';

const sessionOf = async ({ data }: RealBench, { request_id: id }: RunRecord) =>
  (await data.store.loadHandle(id))?.handle_value;
const boundIn = async (bench: RealBench, { run_id: id }: RunRecord) =>
  (await bench.events(id))
    .filter(({ event }) => event.type === 'lifecycle.session.bound')
    .map(({ data }) => data['session_id']);

// The last request to the service that contains the first of these texts.
function expectSent({ model }: RealBench, words: readonly [string, ...string[]], never: readonly string[] = []): void {
  const sent = model.requests
    .map(({ body }) => JSON.stringify(body['input']))
    .findLast((input) => input.includes(words[0]));
  for (const each of words) expect(sent).toContain(each);
  for (const each of never) expect(sent).not.toContain(each);
}

async function fork(bench: RealBench, source: RunRecord, prompt: string): Promise<RunRecord> {
  const { run_id: runId } = await bench.orchestrator.fork(source.run_id, { prompt });
  const run = await bench.waitUntilIdle(runId);
  expect(run.error).toBeNull();
  expect(run.spec).toMatchObject({
    engine: source.spec.engine,
    cwd: source.spec.cwd,
    fork_from: { run_id: source.run_id },
  });
  expect(run.spec.home).not.toBe(source.spec.home);
  const session = await sessionOf(bench, run);
  expect(session).toBeDefined();
  expect(session).not.toBe(await sessionOf(bench, source));
  expect(await boundIn(bench, run)).toEqual([session]);
  return run;
}

describe.each(['codex', 'codex-app-server'])('%s', (engine) => {
  test('a waiting run is forked, stays unaffected, and is answered afterwards', async () => {
    const bench = await openRealBench('codex');
    const waiting = await bench.play('Set it up. [[ask Which database?|Postgres|SQLite]]', {
      engine,
      execution_mode: 'interactive',
    });
    const session = await sessionOf(bench, waiting);
    const forked = await fork(bench, waiting, 'Only in the copy. [[done {"copy":true}]]');
    expect(forked).toMatchObject({ status: 'succeeded', result: { copy: true }, attempt_number: 1 });
    expectSent(bench, ['Only in the copy.', 'Set it up.', 'Which database?']);

    expect(await bench.reply(waiting.run_id, 'Postgres, please')).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    expectSent(bench, ['Postgres, please', 'Set it up.', 'Which database?'], ['Only in the copy.']);
    const done = await bench.reply(waiting.run_id, 'That is all. [[done {"copy":false}]]');
    expect(done).toMatchObject({ status: 'succeeded', result: { copy: false }, attempt_number: 3 });
    expectSent(bench, ['That is all.', 'Set it up.', 'Postgres, please'], ['Only in the copy.']);
    expect(await sessionOf(bench, done)).toBe(session);
    expect(new Set(await boundIn(bench, done))).toEqual(new Set([session]));
  });

  test('a fork of an ended run asks, is answered after its source is deleted, and can be forked itself', async () => {
    const bench = await openRealBench('codex');
    const ended = await bench.play('Begin. [[tool echo output of a tool]][[done 1]]', {
      engine,
      execution_mode: 'interactive',
    });
    expect(ended.status).toBe('succeeded');
    const waiting = await fork(bench, ended, 'Only in the copy. [[ask Which port?]]');
    expect(waiting.status).toBe('waiting_user');
    expectSent(bench, ['Only in the copy.', 'Begin.', 'output of a tool']);
    expect((await bench.data.store.loadPendingInteraction(waiting.run_id))?.question).toMatchObject({
      prompt: 'Which port?',
    });

    const { run_id: heir } = await bench.orchestrator.continueFrom(ended.run_id, { prompt: 'Go on. [[done 2]]' });
    expect(await bench.waitUntilIdle(heir)).toMatchObject({ status: 'succeeded', result: 2 });
    expectSent(bench, ['Go on.', 'Begin.'], ['Only in the copy.']);
    await bench.orchestrator.delete(heir);
    await bench.orchestrator.delete(ended.run_id);
    expect(existsSync(ended.spec.home ?? '')).toBe(false);

    expect(await bench.reply(waiting.run_id, 'Port 5432')).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(await bench.reply(waiting.run_id, 'That is all. [[done 3]]')).toMatchObject({
      status: 'succeeded',
      result: 3,
      attempt_number: 3,
    });
    expectSent(bench, ['That is all.', 'Begin.', 'output of a tool', 'Only in the copy.', 'Port 5432'], ['Go on.']);
    const again = await fork(bench, waiting, 'A copy of the copy. [[done 4]]');
    expect(again).toMatchObject({ status: 'succeeded', result: 4 });
    expectSent(bench, ['A copy of the copy.', 'Begin.', 'output of a tool', 'Only in the copy.', 'Port 5432']);
    await bench.orchestrator.delete(waiting.run_id);
    const { run_id: last } = await bench.orchestrator.continueFrom(again.run_id, { prompt: 'The end. [[done 5]]' });
    expect(await bench.waitUntilIdle(last)).toMatchObject({ status: 'succeeded', result: 5 });
    expectSent(bench, ['The end.', 'Begin.', 'Only in the copy.', 'A copy of the copy.']);
  });

  test('a fork may do no more than its source', async () => {
    const bench = await openRealBench('codex');
    const ended = await bench.play('Look at it. [[done 1]]', { engine, permission: 'read-only' });
    const forked = await fork(bench, ended, 'Change it. [[file made.txt]][[done 2]]');
    expect(forked).toMatchObject({ status: 'succeeded', result: 2, spec: { permission: 'read-only' } });
    expectSent(bench, ['Change it.', 'Look at it.']);
    expect(existsSync(join(bench.cwd, 'made.txt'))).toBe(false);
  });

  test('a run is forked while it is at work in a later turn, and ends as if nothing had been', async () => {
    const bench = await openRealBench('codex');
    const waiting = await bench.play('Set it up. [[answer Which database?]]', {
      engine,
      execution_mode: 'interactive',
    });
    const { interaction_id: id } = (await bench.data.store.loadPendingInteraction(waiting.run_id)) ?? {
      interaction_id: '',
    };
    const before = bench.model.requests.length;
    // Works until the copy has done something.
    await bench.orchestrator.reply(waiting.run_id, {
      interaction_id: id,
      response: 'Postgres, please [[tool until [ -e enough ]; do sleep 0.1; done]][[done 1]]',
    });
    await bench.model.received(before + 1);
    const forked = await fork(bench, waiting, 'Only in the copy. [[tool touch enough]][[done 2]]');
    expect(forked).toMatchObject({ status: 'succeeded', result: 2 });
    expectSent(bench, ['Only in the copy.', 'Set it up.', 'Which database?']);
    expect(await bench.waitUntilIdle(waiting.run_id)).toMatchObject({
      status: 'succeeded',
      result: 1,
      attempt_number: 2,
    });
    const done = await bench.events(waiting.run_id);
    expect(JSON.stringify(done)).not.toContain('Only in the copy.');
  });
});
