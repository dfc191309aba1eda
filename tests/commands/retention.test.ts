// Retention on a real store and real folders: deletes only ended, unused runs, and no more than the rules allow.
import { singleHost } from '../../src/ownership/single-host.js';
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createCountingIds } from '../../src/kernel/ids.js';
import { finishDeletions } from '../../src/commands/delete-run.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { EngineRuntime } from '../../src/machine/engine-runtime.js';
import { sweep, sweepHourly, type RetentionRules } from '../../src/commands/retention.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { RunState } from '../../src/run/statechart.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { change, newRun, T0 } from '../store/conformance.js';

const DAY = 24 * 3600 * 1000;
const HOUR = 3600 * 1000;

let dir: string;
let data: DataDir;
let timers: SimulatedTimers;
let now: number;
let failures: [string, unknown][];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-retention-'));
  data = await openDataDir(dir, { pid: process.pid });
  timers = new SimulatedTimers();
  now = T0;
  failures = [];
});
afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true });
});

const idOf = (number: number): string => `run_${String(number).padStart(4, '0')}`;
const homeOf = (number: number): string => runFolder(dir, idOf(number)).home;

const logOf = (number: number): string => join(dir, 'runs', idOf(number), 'attempts', '1', 'stdout.log');

interface Kept {
  readonly status?: RunState;
  // Days after the start.
  readonly day?: number;
  readonly bytes?: number;
  // Continues this one.
  readonly from?: number;
}

async function keep(number: number, { status = 'succeeded', day = 0, bytes = 100, from }: Kept = {}): Promise<void> {
  const spec = {
    ...newRun(number).spec,
    home: homeOf(from ?? number),
    ...(from === undefined ? {} : { continue_from: idOf(from) }),
  };
  const outcome = await data.store.createRun(newRun(number, { spec }));
  if (!outcome.created) throw new Error(outcome.reason);
  if (status !== 'queued') await data.store.append(change(outcome.run, { now: T0 + day * DAY, set: { status } }));
  mkdirSync(join(dir, 'runs', idOf(number), 'attempts', '1'), { recursive: true });
  writeFileSync(join(dir, 'runs', idOf(number), 'attempts', '1', 'stdout.log'), 'x'.repeat(bytes));
}

function depsWith(store: Store): OrchestratorDeps {
  return {
    store,
    clock: { now: () => now },
    ids: createCountingIds(),
    timers,
    dataDir: dir,
    runtime: {} as EngineRuntime,
    queueLimit: () => 1000,
    ...singleHost(data.store),
  };
}

function sweepBy(
  rules: RetentionRules,
  { store = data.store, signal = new AbortController().signal }: { store?: Store; signal?: AbortSignal } = {},
): Promise<string[]> {
  return sweep(depsWith(store), rules, { signal, onFailure: (runId, error) => failures.push([runId, error]) });
}

async function left(): Promise<number[]> {
  const rows = (await data.store.listRuns({ limit: 100 })).map(({ run_id: id }) => id).toSorted();
  expect(readdirSync(join(dir, 'runs')).toSorted()).toEqual(rows);
  return rows.map((id) => Number(id.slice(4)));
}

test('without rules everything is kept', async () => {
  await keep(1);
  now += 1000 * DAY;
  expect(await sweepBy({})).toEqual([]);
  expect(await left()).toEqual([1]);
});

test('runs that ended before the limit are deleted with their folders; unended runs stay, however old', async () => {
  const states = ['succeeded', 'failed', 'canceled', 'waiting_user', 'running', 'queued'] as const;
  for (const [index, status] of states.entries()) await keep(index + 1, { status });
  await keep(7, { day: 3 });
  now = T0 + 10 * DAY;
  expect(await sweepBy({ ended_after_days: 10 })).toEqual([]);
  now += 1;
  expect((await sweepBy({ ended_after_days: 10 })).toSorted()).toEqual([1, 2, 3].map(idOf));
  expect([await left(), failures]).toEqual([[4, 5, 6, 7], []]);
  now = T0 + 3 * DAY + HOUR;
  expect(await sweepBy({ ended_after_days: 0.01 })).toEqual([idOf(7)]);
});

test('each deletion by a rule leaves a tombstone that names the rule as its author', async () => {
  await keep(1, {});
  const run = await data.store.loadRun(idOf(1));
  now = T0 + 11 * DAY;
  expect(await sweepBy({ ended_after_days: 10 })).toEqual([idOf(1)]);
  const [row, ...others] = await data.access.listAudit(0, 10);
  expect([row?.ts, row?.type, row?.actor_json, row?.address, others]).toEqual([
    now,
    'run.deleted',
    '{"kind":"system","name":"retention"}',
    null,
    [],
  ]);
  expect(JSON.parse(row?.body_json ?? '')).toEqual({
    run_id: idOf(1),
    rasp_seq: run?.heads.rasp_seq,
    digest: run?.heads.digest,
  });
});

test('if the folders are too large together, those that ended longest ago are deleted until they fit', async () => {
  await keep(1, { day: 3, bytes: 100 });
  await keep(2, { day: 1, bytes: 100 });
  await keep(3, { day: 2, bytes: 100 });
  await keep(4, { status: 'waiting_user', bytes: 100 });
  expect(await sweepBy({ max_bytes: 400 })).toEqual([]);
  expect(await sweepBy({ max_bytes: 399 })).toEqual([idOf(2)]);
  expect(await sweepBy({ max_bytes: 200 })).toEqual([idOf(3)]);
  expect(await left()).toEqual([1, 4]);
  expect(await sweepBy({ max_bytes: 1 })).toEqual([idOf(1)]);
  expect(await left()).toEqual([4]);
});

test('what goes by its age makes room before what goes by size', async () => {
  await keep(1, { day: 0, bytes: 300 });
  await keep(2, { day: 5, bytes: 300 });
  now = T0 + 6 * DAY;
  expect(await sweepBy({ ended_after_days: 3, max_bytes: 300 })).toEqual([idOf(1)]);
});

test('a link is measured as a link: its target is neither measured nor deleted', async () => {
  const outside = join(dir, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'large'), 'x'.repeat(100_000));
  await keep(1);
  symlinkSync(outside, join(dir, 'runs', idOf(1), 'folder'));
  symlinkSync(join(outside, 'large'), join(dir, 'runs', idOf(1), 'file'));
  expect(await sweepBy({ max_bytes: 10_000 })).toEqual([]);
  expect(await sweepBy({ max_bytes: 10 })).toEqual([idOf(1)]);
  expect(existsSync(join(outside, 'large'))).toBe(true);
});

test('a run whose session other runs use is not touched, by age or size, until the last of them goes', async () => {
  await keep(1, { day: 0 });
  await keep(2, { day: 1, from: 1, status: 'running' });
  await keep(3, { day: 2, from: 1 });
  await keep(4, { day: 3 });
  now = T0 + 100 * DAY;
  const asked: string[] = [];
  const store = alterStore(data.store, {
    deleteRun: async (runId) => {
      asked.push(runId);
      return data.store.deleteRun(runId);
    },
  });
  expect(await sweepBy({ ended_after_days: 98.5, max_bytes: 1 }, { store })).toEqual([3, 4].map(idOf));
  expect([asked, await left()]).toEqual([
    [idOf(3), idOf(4)],
    [1, 2],
  ]);
  await data.store.append(
    change((await data.store.loadRun(idOf(2))) as RunRecord, { now: T0 + 5 * DAY, set: { status: 'failed' } }),
  );
  expect(await sweepBy({ ended_after_days: 1 })).toEqual([idOf(2), idOf(1)]);
  expect([await left(), failures]).toEqual([[], []]);
});

test('a run whose home another run uses is not even tried, because that would rename its folder', async () => {
  await keep(1, { day: 0 });
  await keep(2, { day: 1, from: 1, status: 'waiting_user' });
  await keep(3, { day: 2, from: 1 });
  now = T0 + 100 * DAY;
  const tried: string[] = [];
  const store = alterStore(data.store, {
    salvageRun: async (runId) => {
      tried.push(runId);
      return data.store.salvageRun(runId);
    },
  });
  for (const rules of [{ ended_after_days: 1 }, { ended_after_days: 1 }]) await sweepBy(rules, { store });
  expect([tried, await left()]).toEqual([[idOf(3)], [1, 2]]);
});

test('a run that another caller deleted first is not reported; every other refusal is', async () => {
  for (const number of [1, 2]) await keep(number);
  now += 10 * DAY;
  const store = alterStore(data.store, {
    deleteRun: async (runId) => (runId === idOf(1) ? 'unknown_run' : 'not_ended'),
  });
  expect(await sweepBy({ ended_after_days: 1 }, { store })).toEqual([]);
  expect(failures).toMatchObject([[idOf(2), { code: 'RUN_NOT_ENDED' }]]);
});

test('a run without a folder counts as empty', async () => {
  await keep(1, { day: 1, bytes: 100 });
  await keep(2, { day: 2, bytes: 100 });
  rmSync(join(dir, 'runs', idOf(1)), { recursive: true });
  expect(await sweepBy({ max_bytes: 100 })).toEqual([]);
  expect(await sweepBy({ max_bytes: 99 })).toEqual([idOf(1), idOf(2)]);
});

describe('while the size of a folder is measured', () => {
  const { lstat, opendir } = fs.promises;
  // Runs the sweep with other calls of node:fs/promises.
  async function sweepWith(calls: Partial<typeof fs.promises>, rules: RetentionRules): Promise<string[]> {
    try {
      Object.assign(fs.promises, calls);
      syncBuiltinESMExports();
      return await sweepBy(rules);
    } finally {
      Object.assign(fs.promises, { lstat, opendir });
      syncBuiltinESMExports();
    }
  }

  test('a file that vanishes counts as 0, and the other files are measured', async () => {
    await keep(1, { day: 1, bytes: 100 });
    await keep(2, { day: 2, bytes: 100 });
    writeFileSync(join(dir, 'runs', idOf(1), 'attempts', '1', 'z.log'), 'x'.repeat(10));
    const vanishing = vi.fn(async (path: fs.PathLike) => {
      if (String(path) === logOf(1)) rmSync(logOf(1));
      return lstat(path);
    });
    const calls = { lstat: vanishing as unknown as typeof lstat };
    expect(await sweepWith(calls, { max_bytes: 110 })).toEqual([]);
    expect([vanishing.mock.calls.length, existsSync(logOf(1))]).toEqual([3, false]);
    expect(await sweepBy({ max_bytes: 109 })).toEqual([idOf(1)]);
  });

  test.each(['opendir', 'lstat'] as const)('an error of %s from the system counts as 0', async (name) => {
    await keep(1);
    const error = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: name });
    expect(await sweepWith({ [name]: () => Promise.reject(error) }, { max_bytes: 1 })).toEqual([]);
  });

  test.each(['opendir', 'lstat'] as const)('an error of %s of another kind ends the sweep', async (name) => {
    await keep(1);
    const calls = { [name]: () => Promise.reject(new TypeError('the path is not valid')) };
    await expect(sweepWith(calls, { max_bytes: 1 })).rejects.toThrow('the path is not valid');
    expect(await left()).toEqual([1]);
  });
});

test('with files on the disk of each host, a size limit deletes only runs whose files are here', async () => {
  await keep(1, { day: 1 });
  await keep(2, { day: 2 });
  rmSync(join(dir, 'runs', idOf(1)), { recursive: true });
  const deps = depsWith(data.store);
  const options = { signal: new AbortController().signal, onFailure: () => {} };
  const local = { ...deps, files: { ...deps.files, layout: 'local' as const } };
  expect(await sweep(local, { max_bytes: 1 }, options)).toEqual([idOf(2)]);
});

test('runs that ended at the same time are deleted in the order of their ids', async () => {
  for (const number of [3, 1, 2]) await keep(number);
  expect(await sweepBy({ max_bytes: 1 })).toEqual([1, 2, 3].map(idOf));
});

test('one that is continued just now is skipped silently', async () => {
  await keep(1);
  const store = alterStore(data.store, { deleteRun: async () => 'session_in_use' });
  now += 10 * DAY;
  expect(await sweepBy({ ended_after_days: 1 }, { store })).toEqual([]);
  expect([await left(), failures]).toEqual([[1], []]);
});

test('a failed deletion is reported, the others proceed, and its moved folder is back at the next start', async () => {
  for (const number of [1, 2, 3]) await keep(number, { day: number });
  now += 10 * DAY;
  const store = alterStore(data.store, {
    deleteRun: async (runId) =>
      runId === idOf(2) ? Promise.reject(new Error('the disk is full')) : data.store.deleteRun(runId),
  });
  expect(await sweepBy({ ended_after_days: 1, max_bytes: 1000 }, { store })).toEqual([idOf(1), idOf(3)]);
  expect(failures.map(([runId, error]) => [runId, String(error)])).toEqual([[idOf(2), 'Error: the disk is full']]);
  await finishDeletions(depsWith(data.store), () => {});
  expect(await left()).toEqual([2]);
  expect(existsSync(join(dir, 'runs', idOf(2), 'attempts', '1', 'stdout.log'))).toBe(true);
  expect(await sweepBy({ ended_after_days: 1 })).toEqual([idOf(2)]);
});

test.each<RetentionRules>([{ ended_after_days: 1, max_bytes: 1 }, { ended_after_days: 1 }, { max_bytes: 1 }])(
  'an aborted sweep by %j deletes no further run',
  async (rules) => {
    for (const number of [1, 2, 3]) await keep(number);
    now += 10 * DAY;
    const stop = new AbortController();
    const store = alterStore(data.store, {
      deleteRun: async (runId, options) => {
        if (runId === idOf(2)) stop.abort();
        return data.store.deleteRun(runId, options);
      },
    });
    expect(await sweepBy(rules, { store, signal: stop.signal })).toEqual([idOf(1), idOf(2)]);
    expect(await left()).toEqual([3]);
  },
);

test('it is done at once and every hour, and not after the end', async () => {
  let swept = 0;
  const sweeping = sweepHourly(timers, async () => (swept += 1));
  for (const times of [1, 2, 3]) {
    await timers.armed(HOUR);
    expect(swept).toBe(times);
    timers.advance(HOUR);
  }
  await sweeping.close();
  timers.advance(10 * HOUR);
  expect([swept, timers.lengths()]).toEqual([4, []]);
});
