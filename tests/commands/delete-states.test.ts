// Deletion of runs in every state, on a real store and real folders: rows and files go together or stay together.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { continueRun } from '../../src/commands/continue-run.js';
import { deleteRun, finishDeletions, type DeleteOptions } from '../../src/commands/delete-run.js';
import { forkRun } from '../../src/commands/fork-run.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, race, refusal, T0 } from '../support/command-bench.js';

let bench: CommandBench;
let failures: [string, unknown][] = [];
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => {
  bench.reset();
  failures = [];
});
afterAll(() => bench.close());

const onFailure = (runId: string, error: unknown): void => void failures.push([runId, error]);
const pathOf = ({ run_id: runId }: Pick<RunRecord, 'run_id'>): string => runFolder(bench.data.path, runId).path;
const asideOf = (run: RunRecord): string => `${pathOf(run)}.deleted`;

function remove(
  { run_id: runId }: Pick<RunRecord, 'run_id'>,
  options: Partial<DeleteOptions> = {},
  deps: Partial<OrchestratorDeps> = {},
): Promise<void> {
  return deleteRun({ ...bench.deps, ...deps }, runId, { isRunHere: false, onFailure, ...options });
}

function withFolder(run: RunRecord): RunRecord {
  mkdirSync(runFolder(bench.data.path, run.run_id).workspace, { recursive: true });
  writeFileSync(join(pathOf(run), 'rasp.jsonl'), '');
  return run;
}

const ended = async (): Promise<RunRecord> =>
  withFolder(await bench.end(await bench.running(), 'succeeded', { session: true }));

async function expectKept(run: RunRecord): Promise<void> {
  expect((await bench.store.listRunIds({ limit: 1000 })).includes(run.run_id)).toBe(true);
  expect([existsSync(join(pathOf(run), 'rasp.jsonl')), existsSync(asideOf(run))]).toEqual([true, false]);
}

async function expectDeleted(run: RunRecord): Promise<void> {
  expect(await bench.store.loadRun(run.run_id)).toBeNull();
  expect([existsSync(pathOf(run)), existsSync(asideOf(run)), failures]).toEqual([false, false, []]);
}

async function lastTombstone(): Promise<{ run_id: string; actor: string | null; address: string | null; ts: number }> {
  const row = (await bench.data.access.listAudit(0, 1000)).at(-1);
  const { run_id } = JSON.parse(row?.body_json ?? '{}') as { run_id: string };
  return { run_id, actor: row?.actor_json ?? null, address: row?.address ?? null, ts: row?.ts ?? 0 };
}

test('an ended run is deleted with its rows and its folder, and leaves a tombstone', async () => {
  const run = await ended();
  bench.clock.at += 5000;
  await remove(run, { by: { actor: { kind: 'token', name: 'ann' }, address: '127.0.0.1' } });
  await expectDeleted(run);
  expect(await lastTombstone()).toEqual({
    run_id: run.run_id,
    actor: '{"kind":"token","name":"ann"}',
    address: '127.0.0.1',
    ts: T0 + 5000,
  });
});

test('without a caller the tombstone has no actor; a run without a folder is deleted', async () => {
  const run = await bench.end(await bench.running(), 'failed');
  await remove(run);
  await expectDeleted(run);
  expect(await lastTombstone()).toEqual({ run_id: run.run_id, actor: null, address: null, ts: T0 });
});

test.each(['queued', 'running', 'waiting_user'] as const)(
  'a %s run is refused, and its folder stays',
  async (state) => {
    const run = state === 'queued' ? await bench.queued() : await bench.running();
    withFolder(run);
    if (state === 'waiting_user') await bench.ask(run);
    let calls = 0;
    const store = alterStore(bench.store, {
      deleteRun: async (...args) => {
        calls += 1;
        return bench.store.deleteRun(...args);
      },
    });
    const message = await refusal(remove(run, {}, { store }), 'RUN_NOT_ENDED');
    expect([message, calls]).toEqual([
      `Run ${run.run_id} is ${state}. Cancel it first: parley cancel ${run.run_id}`,
      0,
    ]);
    await expectKept(run);
  },
);

test('an unknown run is refused, and a folder of that name stays', async () => {
  const unknown = { run_id: 'run_unknown' };
  const folder = pathOf(unknown);
  mkdirSync(folder, { recursive: true });
  await refusal(remove(unknown), 'RUN_NOT_FOUND');
  expect(existsSync(folder)).toBe(true);
  rmSync(folder, { recursive: true });
});

test('the second deletion finds nothing; of several at once exactly one succeeds', async () => {
  const run = await ended();
  await remove(run);
  await refusal(remove(run), 'RUN_NOT_FOUND');
  const other = await ended();
  const { results, errors } = await race(remove(other), remove(other), remove(other));
  expect([results.length, errors]).toMatchObject([1, [{ code: 'RUN_NOT_FOUND' }, { code: 'RUN_NOT_FOUND' }]]);
  await expectDeleted(other);
});

test('a run that another one continues is refused until that one is deleted', async () => {
  const run = await ended();
  const request = { prompt: 'And now?' };
  const next = await bench.end(await continueRun(bench.deps, run.run_id, { request }), 'failed');
  expect(await refusal(remove(run), 'SESSION_IN_USE')).toBe(
    `Run ${next.run_id} continues the session of run ${run.run_id} and uses its home. Delete that run first.`,
  );
  await expectKept(run);
  // The continuation does not own the home: it can be deleted first.
  await remove(next);
  await remove(run);
  await expectDeleted(run);
});

test('a run in whose folder a fork works is refused until the fork has ended', async () => {
  const run = await ended();
  const fork = await forkRun(bench.deps, run.run_id, { request: { prompt: 'Other way.' } });
  expect(await refusal(remove(run), 'SESSION_IN_USE')).toBe(
    `Run ${fork.run_id} works in the folder of run ${run.run_id}. Wait until it has ended, or cancel it.`,
  );
  await expectKept(run);
  await bench.end(fork, 'canceled');
  await remove(run);
  await expectDeleted(run);
  expect(await bench.store.loadRun(fork.run_id)).not.toBeNull();
});

async function damaged(): Promise<RunRecord> {
  const { run } = await bench.waiting();
  withFolder(run);
  await bench.damage(run.run_id);
  return run;
}

describe('a damaged run', () => {
  test('is deleted in any state, because it can be neither answered nor canceled', async () => {
    const run = await damaged();
    await remove(run);
    await expectDeleted(run);
  });

  test('is deleted in any state also if a single value is damaged', async () => {
    const { run } = await bench.waiting();
    withFolder(run);
    await bench.damage(run.run_id, 'result_json');
    expect((await bench.store.salvageRun(run.run_id))?.damage).toHaveLength(1);
    await remove(run);
    await expectDeleted(run);
  });

  test('is refused while a process of it is alive on this or another host', async () => {
    const run = await damaged();
    await refusal(remove(run, { isRunHere: true }), 'RUN_NOT_ENDED');
    const ownership = { ...bench.deps.ownership, isRunElsewhere: async () => true };
    await refusal(remove(run, {}, { ownership }), 'RUN_NOT_ENDED');
    await expectKept(run);
  });
});

const refusing = (outcome: 'not_ended' | 'session_in_use' | 'unknown_run'): Store =>
  alterStore(bench.store, { deleteRun: async () => outcome });

describe('a store that refuses', () => {
  test.each([
    ['not_ended', 'RUN_NOT_ENDED', 'has not ended'],
    ['session_in_use', 'SESSION_IN_USE', 'Another run continues the session'],
  ] as const)('with %s puts the folder back', async (outcome, code, words) => {
    const run = await ended();
    expect(await refusal(remove(run, {}, { store: refusing(outcome) }), code)).toContain(words);
    await expectKept(run);
  });

  test('with unknown_run removes the folder: another caller deleted the rows', async () => {
    const run = await ended();
    await refusal(remove(run, {}, { store: refusing('unknown_run') }), 'RUN_NOT_FOUND');
    expect([existsSync(pathOf(run)), existsSync(asideOf(run))]).toEqual([false, false]);
  });

  test('never touches a folder that another caller put aside', async () => {
    const run = await ended();
    renameSync(pathOf(run), asideOf(run));
    for (const outcome of ['not_ended', 'unknown_run'] as const) {
      await expect(remove(run, {}, { store: refusing(outcome) })).rejects.toThrow();
      expect(existsSync(asideOf(run))).toBe(true);
    }
    const broken = alterStore(bench.store, { deleteRun: () => Promise.reject(new Error('the disk is full')) });
    await expect(remove(run, {}, { store: broken })).rejects.toThrow('the disk is full');
    expect(existsSync(asideOf(run))).toBe(true);
    await finishDeletions(bench.deps, onFailure);
  });
});

test('a host looks for agents in the workspace of the host that created the run', async () => {
  const run = await ended();
  const workspaces: string[] = [];
  const store = alterStore(bench.store, { findAtWork: async (cwd) => (workspaces.push(cwd), null) });
  await remove(run, {}, { store, dataDir: '/elsewhere', files: { ...bench.deps.files, layout: 'local' } });
  expect(workspaces).toEqual([runFolder(bench.data.path, run.run_id).workspace]);
});

test.each(['shared', 'local'] as const)('with %s files only the rows are deleted here', async (layout) => {
  const run = await ended();
  const files = { ...bench.deps.files, layout };
  await remove(run, {}, { files });
  expect([await bench.store.loadRun(run.run_id), existsSync(pathOf(run))]).toEqual([null, true]);
  await refusal(remove(run, {}, { files }), 'RUN_NOT_FOUND');
});

describe('after a crash during a deletion', () => {
  test('the folder is put back if the rows still exist, also those of a damaged run', async () => {
    const [run, broken] = [await ended(), await ended()];
    await bench.damage(broken.run_id);
    for (const one of [run, broken]) renameSync(pathOf(one), asideOf(one));
    await finishDeletions(bench.deps, onFailure);
    await expectKept(run);
    await expectKept(broken);
    expect(failures).toEqual([]);
  });

  test('the folder is removed if the rows are deleted; folders of other runs stay', async () => {
    const [run, other] = [await ended(), await ended()];
    renameSync(pathOf(run), asideOf(run));
    await bench.store.deleteRun(run.run_id);
    await finishDeletions(bench.deps, onFailure);
    await expectDeleted(run);
    await expectKept(other);
  });

  test('hosts that share the store keep the folder, because the run may still be imported', async () => {
    const run = await ended();
    renameSync(pathOf(run), asideOf(run));
    await bench.store.deleteRun(run.run_id);
    await finishDeletions({ ...bench.deps, files: { ...bench.deps.files, layout: 'shared' } }, onFailure);
    expect(existsSync(asideOf(run))).toBe(true);
    rmSync(asideOf(run), { recursive: true });
  });

  test('a data directory without runs has nothing to finish', async () => {
    await finishDeletions({ ...bench.deps, dataDir: bench.folder('empty') }, onFailure);
    expect(failures).toEqual([]);
  });
});
