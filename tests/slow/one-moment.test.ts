// Requests that arrive while another write is in progress: they behave as if it were already stored.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import { alterStore } from '../support/altered-store.js';
import { createRoot, openBench } from '../support/orchestrated.js';

test.each([0, 5, 10, 15, 20, 30, 60])(
  'a run that is canceled during a shutdown has its last event in its files (%i steps later)',
  async (steps) => {
    const root = createRoot();
    const bench = await openBench(root);
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[answer Which?]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    expect((await bench.orchestrator.waitUntilIdle(id)).status).toBe('waiting_user');
    const canceling = bench.orchestrator.cancel(id);
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    await bench.orchestrator.close();
    expect((await canceling).status).toBe('canceled');
    await expect(bench.orchestrator.cancel(id)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    const stored = await bench.data.store.readJournal(id, 'rasp', { limit: 1000 });
    await bench.data.close();
    expect(readFileSync(join(runFolder(join(root, 'data'), id).path, 'rasp.jsonl'), 'utf8')).toBe(
      `${stored.join('\n')}\n`,
    );
  },
);

test('a run is not deleted when a fork that will work in its folder is being stored', async () => {
  const root = createRoot();
  let deleting: Promise<string> | undefined;
  let source = '';
  const bench = await openBench(root, {
    store: (store) =>
      alterStore(store, {
        createRun: (run) => {
          const created = store.createRun(run);
          if (source !== '')
            deleting = bench.orchestrator.delete(source).then(
              () => 'deleted',
              (error: { code: string }) => error.code,
            );
          return created;
        },
      }),
  });
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[answer Done.]]',
    execution_mode: 'auto',
    permission: 'full',
  });
  expect((await bench.orchestrator.waitUntilIdle(id)).status).toBe('succeeded');
  source = id;
  const { run_id: fork } = await bench.orchestrator.fork(id, { prompt: '[[answer More.]]' });
  source = '';
  expect(await deleting).toBe('SESSION_IN_USE');
  expect((await bench.orchestrator.waitUntilIdle(fork)).status).toBe('succeeded');
  await bench.close();
});

test('the home of a run that another continues is never moved by a delete that is refused', async () => {
  const root = createRoot();
  const asked: string[] = [];
  const bench = await openBench(root, {
    store: (store) =>
      alterStore(store, {
        deleteRun: (id) => {
          asked.push(id);
          return store.deleteRun(id);
        },
      }),
  });
  const cwd = join(root, 'work');
  mkdirSync(cwd);
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[answer Done.]]',
    execution_mode: 'auto',
    permission: 'full',
    cwd,
  });
  expect((await bench.orchestrator.waitUntilIdle(id)).status).toBe('succeeded');
  const { run_id: continued } = await bench.orchestrator.continueFrom(id, { prompt: '[[answer More.]]' });
  await expect(bench.orchestrator.delete(id)).rejects.toMatchObject({
    code: 'SESSION_IN_USE',
    message: expect.stringContaining(`${continued} continues`) as string,
  });
  // Its folder is moved away only just before its rows are deleted.
  expect(asked).toEqual([]);
  expect(existsSync(runFolder(join(root, 'data'), id).path)).toBe(true);
  expect((await bench.orchestrator.waitUntilIdle(continued)).status).toBe('succeeded');
  await bench.close();
});
