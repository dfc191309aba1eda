// Deletion with file errors: removes as much as possible, reports the rest, and the data directory still opens.
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeFolder } from '../../src/journal/remove-folder.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { alterStore } from '../support/altered-store.js';
import { createRoot, openBench, type Bench } from '../support/orchestrated.js';

const NOBODY = 65_534;

// As a user to whom the modes of files apply.
async function asNobody(root: string, work: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return work();
  chownSync(root, NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

async function ended(bench: Bench): Promise<string> {
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[answer x]]' });
  await bench.orchestrator.waitUntilIdle(runId);
  return runId;
}

test('a folder with read-only folders in it, as Go leaves them, is removed', async () => {
  const root = createRoot();
  await asNobody(root, async () => {
    const deep = join(root, 'run', 'go', 'pkg', 'mod', 'x@v1');
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'f.go'), 'x', { mode: 0o400 });
    for (const folder of [deep, join(deep, '..'), join(deep, '..', '..')]) chmodSync(folder, 0o500);
    await removeFolder(join(root, 'run'));
    expect(existsSync(join(root, 'run'))).toBe(false);
  });
});

test('files that cannot be removed are reported, the run is deleted anyway, the next start skips them', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const runId = await ended(bench);
  const { path } = runFolder(bench.data.path, runId);
  // A folder that blocks the name for the folder that is moved away.
  mkdirSync(join(`${path}.deleted`, 'in', 'the', 'way'), { recursive: true });
  await expect(bench.orchestrator.delete(runId)).rejects.toThrow();
  expect(readdirSync(path)).toContain('rasp.jsonl');
  await removeFolder(`${path}.deleted`);
  await bench.orchestrator.delete(runId);
  expect(existsSync(path)).toBe(false);
  await bench.close();
  if (process.getuid?.() !== 0) return;
  mkdirSync(join(root, 'data', 'runs', 'run_gone.deleted'));
  const failures: unknown[] = [];
  const { finishDeletions } = await import('../../src/commands/delete-run.js');
  const deps = { ...bench.deps, store: alterStore(bench.deps.store, { listByPrefix: async () => [] }) };
  // The folder above belongs to root: nothing can be moved out of it.
  process.seteuid?.(NOBODY);
  try {
    chmodTraversable(root);
    await finishDeletions(deps, (id, error) => failures.push([id, (error as NodeJS.ErrnoException).code]));
  } finally {
    process.seteuid?.(0);
  }
  expect(failures).toEqual([['run_gone', 'EACCES']]);
});

// The folders of a test are private to its user; here another user must read them.
function chmodTraversable(root: string): void {
  process.seteuid?.(0);
  for (const folder of [root, join(root, 'data'), join(root, 'data', 'runs')]) chmodSync(folder, 0o755);
  chownSync(join(root, 'data', 'runs', 'run_gone.deleted'), NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
}

test('a folder created meanwhile is replaced when the folder that was moved aside has to be put back', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const runId = await ended(bench);
  const { path } = runFolder(bench.data.path, runId);
  const deps = {
    ...bench.deps,
    store: alterStore(bench.deps.store, {
      deleteRun: async () => {
        mkdirSync(path);
        writeFileSync(join(path, 'new'), 'x');
        return 'session_in_use' as const;
      },
    }),
  };
  const { deleteRun } = await import('../../src/commands/delete-run.js');
  await expect(deleteRun(deps, runId, { isRunHere: false, onFailure: () => {} })).rejects.toMatchObject({
    code: 'SESSION_IN_USE',
  });
  expect(readdirSync(path)).toContain('rasp.jsonl');
  expect(existsSync(`${path}.deleted`)).toBe(false);
  await bench.close();
});

test('a store that cannot delete leaves the files where they were', async () => {
  const root = createRoot();
  let broken = true;
  const bench = await openBench(root, {
    store: (store) =>
      alterStore(store, {
        deleteRun: async (id) => {
          if (broken) throw new Error('database or disk is full');
          return store.deleteRun(id);
        },
      }),
  });
  const runId = await ended(bench);
  const { path } = runFolder(bench.data.path, runId);
  const before = readdirSync(path);
  await expect(bench.orchestrator.delete(runId)).rejects.toThrow('disk is full');
  expect(readdirSync(path)).toEqual(before);
  expect(existsSync(`${path}.deleted`)).toBe(false);
  broken = false;
  await bench.orchestrator.delete(runId);
  expect(existsSync(path)).toBe(false);
  await bench.close();
});
