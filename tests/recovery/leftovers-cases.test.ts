// Files of deleted runs: removed page by page, one pass at a time, and kept for runs that exist again.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import { createIds } from '../../src/kernel/ids.js';
import { systemClock } from '../../src/kernel/clock.js';
import { MARK_NAME } from '../../src/process/process-table.js';
import { systemTimers } from '../../src/process/timers.js';
import { Leftovers } from '../../src/recovery/leftovers.js';
import { CommandBench } from '../support/command-bench.js';
import { alterStore } from '../support/altered-store.js';

const ids = createIds(systemClock);

let bench: CommandBench;
let failures: [string, unknown][];
let waiting: string[];
let queries: [except: readonly string[], limit: number][];
let forgotten: string[];
let controller: AbortController;

beforeEach(async () => {
  bench = await CommandBench.open();
  [failures, waiting, queries, forgotten] = [[], [], [], []];
  controller = new AbortController();
});
afterEach(() => bench.close());

function leftovers(changes: Parameters<typeof alterStore>[1] = {}): Leftovers {
  const { deps } = bench;
  const files = {
    ...deps.files,
    listLeftovers: async (except: readonly string[], limit: number) => {
      queries.push([except, limit]);
      return waiting.filter((runId) => !except.includes(runId)).slice(0, limit);
    },
    forgetLeftover: async (runId: string) => {
      forgotten.push(runId);
      waiting = waiting.filter((other) => other !== runId);
    },
  };
  const whole = { ...deps, store: alterStore(deps.store, changes), files, timers: systemTimers };
  return new Leftovers(whole, controller.signal, (runId, error) => void failures.push([runId, error]));
}

function makeFiles(runId: string): string {
  const { path } = runFolder(bench.deps.dataDir, runId);
  mkdirSync(path, { recursive: true });
  waiting.push(runId);
  return path;
}

// A process that ignores SIGTERM: only a kill without a grace period ends it at once.
function startStubborn(mark: string) {
  return spawn('sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'], {
    env: { ...process.env, [MARK_NAME]: mark },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

test('the files of a deleted run are removed and forgotten', async () => {
  const runId = ids.run();
  const path = makeFiles(runId);
  await leftovers().remove();
  expect(existsSync(path)).toBe(false);
  expect(forgotten).toEqual([runId]);
  expect(queries).toEqual([[[], 50]]);
});

test('a run that is stored again keeps its files', async () => {
  const run = await bench.queued();
  const path = makeFiles(run.run_id);
  await leftovers().remove();
  expect(existsSync(path)).toBe(true);
  expect(forgotten).toEqual([run.run_id]);
});

test('a name that is no run id is forgotten without touching a path', async () => {
  waiting.push('..');
  await leftovers({ loadRun: () => Promise.reject(new Error('not a run id')) }).remove();
  expect(forgotten).toEqual(['..']);
  expect(existsSync(bench.deps.dataDir)).toBe(true);
});

test('the next page is queried only after a full one', async () => {
  const names = Array.from({ length: 51 }, (_, index) => `../${index}`);
  waiting.push(...names);
  await leftovers().remove();
  expect(queries).toHaveLength(2);
  expect(forgotten).toEqual(names);
  waiting.push(...names.slice(0, 49));
  await leftovers().remove();
  expect(queries).toHaveLength(3);
});

test('a run whose files cannot be removed is reported and left out of later passes', async () => {
  const [stuck, other] = [ids.run(), ids.run()];
  makeFiles(stuck);
  makeFiles(other);
  const work = leftovers({
    loadRun: async (runId) => {
      if (runId === stuck) throw new Error('the row is damaged');
      return null;
    },
  });
  await work.remove();
  expect(failures).toEqual([[stuck, new Error('the row is damaged')]]);
  expect(forgotten).toEqual([other]);
  await work.remove();
  expect(queries.at(-1)).toEqual([[stuck], 50]);
  expect(failures).toHaveLength(1);
});

test('a list that cannot be read is reported without a run', async () => {
  const work = leftovers();
  waiting = null as never;
  await work.remove();
  expect(failures).toEqual([['', expect.any(TypeError)]]);
});

test('nothing is removed once the host is closed', async () => {
  const path = makeFiles(ids.run());
  controller.abort();
  await leftovers().remove();
  expect([existsSync(path), forgotten, queries.length]).toEqual([true, [], 1]);
});

test('no further page is queried once the host is closed', async () => {
  waiting.push(...Array.from({ length: 60 }, (_, index) => `../${index}`));
  const work = leftovers().remove();
  controller.abort();
  await work;
  expect([queries.length, forgotten]).toEqual([1, []]);
});

test('callers before a pass starts share it, and later ones get another', async () => {
  const work = leftovers();
  const first = work.remove();
  expect(work.remove()).toBe(first);
  await first;
  expect(queries).toHaveLength(1);
  const second = work.remove();
  expect(second).not.toBe(first);
  await second;
  expect(queries).toHaveLength(2);
});

test('the engine of a deleted run is ended at once, before its folder is removed', async () => {
  const [runId, otherId] = [ids.run(), ids.run()];
  makeFiles(runId);
  const [child, other] = [startStubborn(`${runId}/1`), startStubborn(`${otherId}/1`)];
  try {
    for (const one of [child, other]) await new Promise((resolve) => one.stdout.once('data', resolve));
    const exit = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
    await leftovers().remove();
    expect(await exit).toBe('SIGKILL');
    expect(other.exitCode ?? other.signalCode).toBeNull();
  } finally {
    child.kill('SIGKILL');
    other.kill('SIGKILL');
  }
  expect(failures).toEqual([]);
});
