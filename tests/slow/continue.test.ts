// After the end: a new run on the session of an old one, and the journal as files.
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runFolder } from '../../src/orchestrator/run-folder.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { STAND_INS } from '../support/stand-in.js';

async function play(bench: Bench, engine: string, prompt: string, rest: object = {}) {
  const { run_id: runId } = await bench.orchestrator.create({ engine, prompt, execution_mode: 'interactive', permission: 'full', ...rest });
  await bench.orchestrator.settled(runId);
  return expectSound(bench, runId);
}

describe.each(STAND_INS)('%s', (engine) => {
  test('an ended run is continued with a new prompt: the same session, directory and home', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const first = await play(bench, engine, '[[answer One.]][[done 1]]');
    const { run_id: runId } = await bench.orchestrator.continueFrom(first.run_id, { prompt: '[[answer Two.]][[done 2]]' });
    await bench.orchestrator.settled(runId);
    const second = await expectSound(bench, runId);
    expect(second).toMatchObject({ status: 'succeeded', result: 2, attempt_number: 1, spec: { continue_from: first.run_id, cwd: first.spec.cwd, home: first.spec.home } });
    expect(startsIn(root).map(({ resumed }) => resumed)).toEqual([false, true]);
    await bench.close();
  });

  test('a run that failed in its second turn is tried again from its session, with the last answer', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const waiting = await play(bench, engine, '[[ask Which?]][[fail]][[done 3]]');
    const pending = await bench.data.store.loadPending(waiting.run_id);
    await bench.orchestrator.reply(waiting.run_id, { interaction_id: pending?.interaction_id ?? '', response: 'Postgres, please' });
    await bench.orchestrator.settled(waiting.run_id);
    expect(await expectSound(bench, waiting.run_id)).toMatchObject({ status: 'failed', error: { code: 'ENGINE_TURN_FAILED' } });
    const { run_id: runId } = await bench.orchestrator.retry(waiting.run_id);
    await bench.orchestrator.settled(runId);
    expect(await expectSound(bench, runId)).toMatchObject({ status: 'succeeded', result: 3, spec: { prompt: 'Postgres, please' } });
    expect(startsIn(root)).toHaveLength(3);
    await bench.close();
  });
});

test('a run that has not ended, or has no session, cannot be continued', async () => {
  const bench = await openBench(createRoot());
  const waiting = await play(bench, 'codex', '[[ask Which?]]');
  await expect(bench.orchestrator.continueFrom(waiting.run_id, { prompt: 'x' })).rejects.toMatchObject({ code: 'RUN_NOT_ENDED' });
  await expect(bench.orchestrator.retry(waiting.run_id)).rejects.toMatchObject({ code: 'RUN_NOT_ENDED' });
  const lost = await play(bench, 'codex', '[[nosession]][[answer x]]', { execution_mode: 'auto' });
  await expect(bench.orchestrator.continueFrom(lost.run_id, { prompt: 'x' })).rejects.toMatchObject({ code: 'NO_SESSION' });
  const again = await bench.orchestrator.retry(lost.run_id);
  await bench.orchestrator.settled(again.run_id);
  expect((await expectSound(bench, again.run_id)).spec.prompt).toBe(lost.spec.prompt);
  await bench.close();
});

test('the journal stands beside the database as files, byte for byte, and is made whole where it is not', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[events 2000 50]][[utf8]][[stderr 3]][[ask Which?]]', execution_mode: 'interactive' });
  await bench.orchestrator.settled(runId);
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
  // As a crash would leave them: no sign of a clean end, one file torn, one gone.
  rmSync(join(bench.data.path, 'exports.clean'));
  writeFileSync(join(folder, 'rasp.jsonl'), 'torn');
  rmSync(join(folder, 'fcmp.jsonl'));
  const again = await openBench(root);
  const preserved = await again.data.store.readJournal(runId, 'rasp', { fromSeq: rasp.length + 1, limit: 10 });
  rasp.push(...preserved);
  check();
  await again.close();
});
