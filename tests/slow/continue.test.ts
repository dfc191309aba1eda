// After the end: a new run on the session of an old one, and the journal as files.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { STAND_INS } from '../support/stand-in.js';

async function play(bench: Bench, engine: string, prompt: string, rest: object = {}) {
  const { run_id: runId } = await bench.orchestrator.create({
    engine,
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId);
}

describe.each(STAND_INS)('%s', (engine) => {
  test('an ended run is continued with a new prompt: the same session, directory and home', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const first = await play(bench, engine, '[[answer One.]][[done 1]]');
    const { run_id: runId } = await bench.orchestrator.continueFrom(first.run_id, {
      prompt: '[[answer Two.]][[done 2]]',
    });
    await bench.orchestrator.waitUntilIdle(runId);
    const second = await expectSound(bench, runId);
    expect(second).toMatchObject({
      status: 'succeeded',
      result: 2,
      attempt_number: 1,
      spec: { continue_from: first.run_id, cwd: first.spec.cwd, home: first.spec.home },
    });
    expect(startsIn(root).map(({ resumed }) => resumed)).toEqual([false, true]);
    await bench.close();
  });

  test('a run that failed in its second turn is tried again from its session, with the last answer', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const waiting = await play(bench, engine, '[[ask Which?]][[fail]][[done 3]]');
    const pending = await bench.data.store.loadPendingInteraction(waiting.run_id);
    await bench.orchestrator.reply(waiting.run_id, {
      interaction_id: pending?.interaction_id ?? '',
      response: 'Postgres, please',
    });
    await bench.orchestrator.waitUntilIdle(waiting.run_id);
    expect(await expectSound(bench, waiting.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_TURN_FAILED' },
    });
    const { run_id: runId } = await bench.orchestrator.retry(waiting.run_id);
    await bench.orchestrator.waitUntilIdle(runId);
    expect(await expectSound(bench, runId)).toMatchObject({
      status: 'succeeded',
      result: 3,
      spec: { prompt: 'Postgres, please' },
    });
    expect(startsIn(root)).toHaveLength(3);
    await bench.close();
  });
});

test('a run that has not ended, or has no session, cannot be continued', async () => {
  const bench = await openBench(createRoot());
  const waiting = await play(bench, 'codex', '[[ask Which?]]');
  await expect(bench.orchestrator.continueFrom(waiting.run_id, { prompt: 'x' })).rejects.toMatchObject({
    code: 'RUN_NOT_ENDED',
  });
  await expect(bench.orchestrator.retry(waiting.run_id)).rejects.toMatchObject({ code: 'RUN_NOT_ENDED' });
  const lost = await play(bench, 'codex', '[[nosession]][[answer x]]', { execution_mode: 'auto' });
  await expect(bench.orchestrator.continueFrom(lost.run_id, { prompt: 'x' })).rejects.toMatchObject({
    code: 'NO_SESSION',
  });
  const again = await bench.orchestrator.retry(lost.run_id);
  await bench.orchestrator.waitUntilIdle(again.run_id);
  expect((await expectSound(bench, again.run_id)).spec.prompt).toBe(lost.spec.prompt);
  await bench.close();
});

test('one request id to continue two runs gets REQUEST_ID_CONFLICT; for the same run, the same result', async () => {
  const bench = await openBench(createRoot());
  const one = await play(bench, 'codex', '[[done 1]]');
  const other = await play(bench, 'codex', '[[done 1]]');
  const request = { prompt: '[[done 2]]', request_id: 'again' };
  const first = await bench.orchestrator.continueFrom(one.run_id, request);
  await expect(bench.orchestrator.continueFrom(other.run_id, request)).rejects.toMatchObject({
    code: 'REQUEST_ID_CONFLICT',
  });
  expect((await bench.orchestrator.continueFrom(one.run_id, request)).run_id).toBe(first.run_id);
  await bench.orchestrator.waitUntilIdle(first.run_id);
  expect(await bench.data.store.listRuns({ limit: 10 })).toHaveLength(3);
  await bench.close();
});

test.each(['[[done 1]]', '[[nosession]][[answer x]]'])(
  'a retry of %s with one request id is one run, however often it is asked for',
  async (prompt) => {
    const root = createRoot();
    const bench = await openBench(root);
    const ended = await play(bench, 'codex', prompt, { execution_mode: 'auto' });
    const tries = await Promise.all(
      Array.from({ length: 5 }, () => bench.orchestrator.retry(ended.run_id, { request_id: 'again' })),
    );
    await bench.orchestrator.waitUntilIdle(tries[0]?.run_id ?? '');
    tries.push(await bench.orchestrator.retry(ended.run_id, { request_id: 'again' }));
    expect(new Set(tries.map(({ run_id: runId }) => runId)).size).toBe(1);
    expect(startsIn(root)).toHaveLength(2);
    await bench.close();
  },
);

test('a session in which a run is at work is not continued by another until that one has ended', async () => {
  const bench = await openBench(createRoot());
  const ended = await play(bench, 'codex', '[[done 1]]');
  const { run_id: heir } = await bench.orchestrator.continueFrom(ended.run_id, { prompt: '[[ask Which?]]' });
  const refused = async () => {
    await expect(bench.orchestrator.continueFrom(ended.run_id, { prompt: 'x' })).rejects.toMatchObject({
      code: 'SESSION_IN_USE',
      message: expect.stringContaining(heir) as string,
    });
    await expect(bench.orchestrator.retry(ended.run_id)).rejects.toMatchObject({ code: 'SESSION_IN_USE' });
  };
  await refused();
  await bench.orchestrator.waitUntilIdle(heir);
  await refused();
  await bench.orchestrator.cancel(heir);
  const { run_id: next } = await bench.orchestrator.continueFrom(ended.run_id, { prompt: '[[done 2]]' });
  await bench.orchestrator.waitUntilIdle(next);
  expect((await expectSound(bench, next)).status).toBe('succeeded');
  await bench.close();
});

test('a journal file replaced by a folder is rewritten from the store, at once and at the next start', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const runs = [
    await play(bench, 'codex', '[[ask Which?]][[done 1]]'),
    await play(bench, 'codex', '[[ask Which?]][[done 1]]'),
  ];
  const fileOf = (runId: string, name: string) => join(runFolder(bench.data.path, runId).path, name);
  const replace = (runId: string): void => {
    rmSync(fileOf(runId, 'rasp.jsonl'));
    mkdirSync(fileOf(runId, 'rasp.jsonl'));
  };
  const expectWhole = async (at: Bench, runId: string): Promise<void> => {
    const { fcmp } = await journalOf(at, runId);
    const rasp = await at.data.store.readJournal(runId, 'rasp', { limit: 100_000 });
    const read = (name: string): string =>
      statSync(fileOf(runId, name)).isFile() ? readFileSync(fileOf(runId, name), 'utf8') : '';
    await expect
      .poll(() => [read('rasp.jsonl'), read('fcmp.jsonl')])
      .toEqual([`${rasp.join('\n')}\n`, `${fcmp.join('\n')}\n`]);
  };
  for (const { run_id: runId } of runs) {
    replace(runId);
    const pending = await bench.data.store.loadPendingInteraction(runId);
    await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: 'x' });
    await bench.orchestrator.waitUntilIdle(runId);
    await expectWhole(bench, runId);
  }
  const waiting = await play(bench, 'codex', '[[ask Which?]][[done 1]]');
  await bench.close();
  replace(waiting.run_id);
  const again = await openBench(root);
  await expectWhole(again, waiting.run_id);
  expect([...bench.failures, ...again.failures]).toEqual([]);
  await again.close();
});

test.each<[string, (sign: string) => void]>([
  ['a crash', (sign) => rmSync(sign)],
  ['a power cut after a clean end', (sign) => writeFileSync(sign, 'another-life-of-the-system\n')],
])('journal files equal the database byte for byte, and are repaired after %s', async (_what, leave) => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: runId } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[events 2000 50]][[utf8]][[stderr 3]][[ask Which?]]',
    execution_mode: 'interactive',
  });
  await bench.orchestrator.waitUntilIdle(runId);
  const folder = runFolder(bench.data.path, runId).path;
  const rasp = await bench.data.store.readJournal(runId, 'rasp', { limit: 100_000 });
  const { fcmp } = await journalOf(bench, runId);
  const check = () => {
    expect(readFileSync(join(folder, 'rasp.jsonl'), 'utf8')).toBe(`${rasp.join('\n')}\n`);
    expect(readFileSync(join(folder, 'fcmp.jsonl'), 'utf8')).toBe(`${fcmp.join('\n')}\n`);
    expect(statSync(join(folder, 'rasp.jsonl')).mode & 0o077).toBe(0);
  };
  check();
  await bench.close();
  // One file torn, one missing, and no mark of a clean shutdown since the system started.
  leave(join(bench.data.path, 'exports.clean'));
  writeFileSync(join(folder, 'rasp.jsonl'), 'torn');
  rmSync(join(folder, 'fcmp.jsonl'));
  const again = await openBench(root);
  const preserved = await again.data.store.readJournal(runId, 'rasp', { fromSeq: rasp.length + 1, limit: 10 });
  rasp.push(...preserved);
  check();
  await again.close();
});
