// The files next to the journal are written a little later, and are complete whenever a reader opens them.
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JournalFiles } from '../../src/journal/journal-files.js';
import { systemTimers } from '../../src/process/timers.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord } from '../../src/store/store.js';
import { T0, change, flush, newRun } from '../store/conformance.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

let dir: string;
let data: DataDir;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-files-'));
  data = await openDataDir(dir, { pid: process.pid });
});
afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true, force: true });
});

const pathOf = (runId: string) => join(dir, 'runs', runId, 'rasp.jsonl');
const countLines = (runId: string) =>
  existsSync(pathOf(runId)) ? readFileSync(pathOf(runId), 'utf8').split('\n').length - 1 : 0;

async function createRun(number = 1): Promise<RunRecord> {
  const outcome = await data.store.createRun(newRun(number));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

async function store(run: RunRecord, rest: Parameters<typeof change>[1]): Promise<RunRecord> {
  const outcome = await data.store.append(change(run, rest));
  if (!outcome.committed) throw new Error(outcome.reason);
  return { ...run, status: rest?.set?.status ?? run.status, heads: outcome.heads };
}

test('output of a turn is batched briefly; a new state of the run and the end of the run write all of it', async () => {
  const timers = new SimulatedTimers();
  const files = new JournalFiles({ store: data.store, timers, dataDir: dir }, () => {});
  let run = await createRun();
  expect(countLines(run.run_id)).toBe(2);
  for (let seq = 3; seq < 13; seq += 1) run = await store(run, { journal: flush(seq, 1, null, T0 + seq) });
  expect(countLines(run.run_id)).toBe(2);
  timers.advance(1000);
  expect(countLines(run.run_id)).toBe(12);
  run = await store(run, { journal: flush(13, 1, null, T0 + 20) });
  run = await store(run, { set: { status: 'running' }, journal: flush(14, 1, null, T0 + 21) });
  expect(countLines(run.run_id)).toBe(14);
  run = await store(run, { journal: flush(15, 1, null, T0 + 22) });
  await files.close();
  expect(countLines(run.run_id)).toBe(15);
  expect(readFileSync(pathOf(run.run_id), 'utf8')).toBe(
    `${(await data.store.readJournal(run.run_id, 'rasp', { limit: 100 })).join('\n')}\n`,
  );
});

test('lines that wait are copies: the bytes of a commit may be used again', async () => {
  const timers = new SimulatedTimers();
  const files = new JournalFiles({ store: data.store, timers, dataDir: dir }, () => {});
  const run = await createRun();
  const journal = flush(3, 1000, 3, T0 + 10);
  expect(journal.rasp.bytes.length).toBeGreaterThan(64 * 1024);
  await store(run, { journal });
  const expected = [journal.rasp, journal.fcmp].map((lines) => lines?.bytes.toString() ?? '');
  for (const lines of [journal.rasp, journal.fcmp]) lines?.bytes.fill('x');
  timers.advance(1000);
  for (const [index, name] of ['rasp', 'fcmp'].entries())
    expect(readFileSync(join(dir, 'runs', run.run_id, `${name}.jsonl`), 'utf8').endsWith(expected[index] ?? '-')).toBe(
      true,
    );
  await files.close();
});

test('a run that is deleted leaves nothing that was gathered', async () => {
  const files = new JournalFiles({ store: data.store, timers: systemTimers, dataDir: dir }, () => {});
  let run = await createRun();
  run = await store(run, { set: { status: 'canceled' }, journal: flush(3, 1, null, T0 + 10) });
  run = await store(run, { journal: flush(4, 1, null, T0 + 20) });
  rmSync(join(dir, 'runs', run.run_id), { recursive: true });
  expect(await data.store.deleteRun(run.run_id)).toBe('deleted');
  await files.close();
  expect(existsSync(join(dir, 'runs', run.run_id))).toBe(false);
});

test('the files of many runs are written in steps, and lines that come meanwhile with the next round', async () => {
  const alarms: (() => void)[] = [];
  const files = new JournalFiles(
    { store: data.store, timers: { set: (_ms, fire) => (alarms.push(fire), () => {}) }, dataDir: dir },
    () => {},
  );
  const runs = [await createRun(1), await createRun(2), await createRun(3)];
  const print = (seq: number) =>
    Promise.all(
      runs.map(async (run, index) => (runs[index] = await store(run, { journal: flush(seq, 1, null, T0 + 10 * seq) }))),
    );
  await print(3);
  const counts = () => runs.map(({ run_id: id }) => countLines(id));
  const next = (): number[] => {
    alarms.shift()?.();
    return counts();
  };
  expect([counts(), alarms.length]).toEqual([[2, 2, 2], 1]);
  expect(next()).toEqual([3, 2, 2]);
  await print(4);
  expect(next()).toEqual([3, 4, 2]);
  expect(next()).toEqual([3, 4, 4]);
  expect(alarms).toHaveLength(1);
  expect(next()).toEqual([4, 4, 4]);
  expect(alarms).toEqual([]);
  await files.close();
});

test('a file that could not be written is repaired as soon as that works again, without a restart', async () => {
  const timers = new SimulatedTimers();
  const failures: unknown[] = [];
  const files = new JournalFiles({ store: data.store, timers, dataDir: dir }, (error) => failures.push(error));
  let run = await createRun();
  // A file in place of the run's folder refuses each write, as a full disk does.
  const folder = dirname(pathOf(run.run_id));
  renameSync(folder, `${folder}.away`);
  writeFileSync(folder, '');
  run = await store(run, { set: { status: 'running' }, journal: flush(3, 1, null, T0 + 10) });
  run = await store(run, { set: { status: 'succeeded' }, journal: flush(4, 1, null, T0 + 11) });
  expect(failures).toHaveLength(1);
  timers.advance(10_000);
  await timers.armed(10_000);
  rmSync(folder);
  renameSync(`${folder}.away`, folder);
  timers.advance(10_000);
  await expect.poll(() => countLines(run.run_id)).toBe(4);
  await files.close();
  expect([failures.length, timers.lengths()]).toEqual([1, []]);
});
