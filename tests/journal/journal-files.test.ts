// The journal files equal the store, even when they are repaired while a run prints. A start checks them unless the
// last shutdown was clean and the system did not restart. They never block a shutdown.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JournalFiles } from '../../src/journal/journal-files.js';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { systemTimers, type Timers } from '../../src/process/timers.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { T0, change, flush, newRun } from '../store/conformance.js';
import { alterStore } from '../support/altered-store.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

let dir: string;
let looked: number;
const failures: unknown[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-files-'));
  looked = 0;
  failures.length = 0;
  startSystem('first');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const boot = () => join(dir, 'boot_id');
const startSystem = (name: string): void => writeFileSync(boot(), name);
const store = {
  onCommitted: () => () => {},
  listRunIds: async () => ((looked += 1), []),
  summaries: { listRuns: async () => [] },
} as unknown as Store;
const openFiles = (bootFile = boot()) =>
  new JournalFiles(
    { store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    bootFile,
  );

// Whether it checked the files of all runs.
async function live(bootFile?: string): Promise<boolean> {
  const before = looked;
  const files = openFiles(bootFile);
  await files.repair(() => false);
  await files.close();
  return looked > before;
}

test('after a clean shutdown the files are not checked until the system restarts', async () => {
  expect(await live()).toBe(true);
  expect(await live()).toBe(false);
  // Data that was not on disk yet may be lost in a power failure.
  startSystem('second');
  expect(await live()).toBe(true);
  expect(await live()).toBe(false);
});

test('a torn mark of a clean shutdown, or one of an older Parley, is ignored', async () => {
  await live();
  for (const text of ['', 'fir']) {
    writeFileSync(join(dir, 'exports.clean'), text);
    expect(await live(), text).toBe(true);
  }
});

test('while it lives there is no such sign', async () => {
  await live();
  const files = openFiles();
  expect(existsSync(join(dir, 'exports.clean'))).toBe(false);
  await files.close();
  expect(existsSync(join(dir, 'exports.clean'))).toBe(true);
});

test('where the system does not say when it was started, every start looks', async () => {
  for (const file of [join(dir, 'none'), '/dev/null'])
    expect([await live(file), await live(file)]).toEqual([true, true]);
});

test('a deleted data directory is reported, and the shutdown still completes', async () => {
  await live();
  const files = openFiles();
  rmSync(dir, { recursive: true });
  await files.close();
  expect(failures).toMatchObject([{ code: 'ENOENT' }]);
});

// A run in a real store that prints an event with each call.
async function openPrinting(timers: Timers = systemTimers) {
  const data = await openDataDir(dir, { pid: process.pid });
  const files = new JournalFiles(
    { store: data.store, timers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  const outcome = await data.store.createRun(newRun(1));
  if (!outcome.created) throw new Error(outcome.reason);
  let { run }: { run: RunRecord } = outcome;
  const commit = async (rest: Parameters<typeof change>[1]): Promise<void> => {
    const stored = await data.store.append(change(run, rest));
    if (!stored.committed) throw new Error(stored.reason);
    run = { ...run, status: rest?.set?.status ?? run.status, heads: stored.heads };
  };
  await commit({ set: { status: 'running' }, journal: flush(3, 1, 3, T0 + 3) });
  const print = (events = 1) =>
    commit({ journal: flush(run.heads.rasp_seq + 1, events, run.heads.fcmp_seq + 1, run.heads.ts + 1) });
  const path = join(dir, 'runs', run.run_id, 'rasp.jsonl');
  const isWhole = async (): Promise<boolean> => {
    const of = async (protocol: 'rasp' | 'fcmp') =>
      `${(await data.store.readJournal(run.run_id, protocol, { limit: 1e9 })).join('\n')}\n`;
    return (
      readFileSync(path, 'utf8') === (await of('rasp')) &&
      readFileSync(join(dir, 'runs', run.run_id, 'fcmp.jsonl'), 'utf8') === (await of('fcmp'))
    );
  };
  const end = () =>
    commit({
      set: { status: 'canceled' },
      journal: flush(run.heads.rasp_seq + 1, 1, run.heads.fcmp_seq + 1, run.heads.ts + 1),
    });
  return { data, files, print, end, path, isWhole };
}

test('pending lines are not appended twice when their file is repaired meanwhile', async () => {
  const { data, files, print, path, isWhole } = await openPrinting();
  for (let event = 0; event < 6; event += 1) await print();
  await files.repair(() => false);
  await print();
  // A torn one as well.
  writeFileSync(path, readFileSync(path).subarray(0, -5));
  await files.repair(() => false);
  await files.close();
  expect(await isWhole()).toBe(false);
  rmSync(join(dir, 'exports.clean'));
  const again = new JournalFiles(
    { store: data.store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await print();
  await print();
  const repairing = again.repair(() => false);
  await print();
  await repairing;
  await print();
  await again.close();
  expect(await isWhole()).toBe(true);
  await data.close();
  expect(failures).toEqual([]);
});

test('nor when nothing comes meanwhile', async () => {
  const { data, files, print, isWhole } = await openPrinting();
  for (let event = 0; event < 6; event += 1) await print();
  await files.repair(() => false);
  expect(await isWhole()).toBe(true);
  await print();
  await files.close();
  expect(await isWhole()).toBe(true);
  await data.close();
});

test('a run that prints without a pause does not delay its own lines', async () => {
  const timers = new SimulatedTimers();
  const { data, files, print, isWhole } = await openPrinting(timers);
  await print();
  timers.advance(600);
  await print();
  expect(await isWhole()).toBe(false);
  timers.advance(600);
  expect(await isWhole()).toBe(true);
  await files.close();
  await data.close();
});

test('a run that is deleted during a repair of files does not come back as a folder', async () => {
  const { data, files, end, path } = await openPrinting();
  await end();
  let isLooked = false;
  const store = alterStore(data.store, {
    readLines: async (runId, ...asked) => {
      const read = await data.store.readLines(runId, ...asked);
      if (!isLooked) {
        isLooked = true;
        rmSync(dirname(path), { recursive: true });
        expect(await data.store.deleteRun(runId)).toBe('deleted');
      }
      return read;
    },
  });
  const again = new JournalFiles(
    { store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await again.repair(() => false);
  expect(isLooked).toBe(true);
  expect(existsSync(dirname(path))).toBe(false);
  await again.close();
  await files.close();
  expect(existsSync(join(dir, 'exports.clean'))).toBe(true);
  await data.close();
  expect(failures).toEqual([]);
});

test('nothing follows a possibly torn line; the next start checks the files, unless the run was deleted', async () => {
  const { data, files, print, end, path, isWhole } = await openPrinting(new SimulatedTimers());
  await files.repair(() => false);
  const stood = readFileSync(path, 'utf8');
  const shut = (): void => {
    rmSync(dirname(path), { recursive: true });
    writeFileSync(dirname(path), '');
  };
  const open = (): void => {
    rmSync(dirname(path));
    mkdirSync(dirname(path));
  };
  shut();
  await end();
  expect(failures.splice(0)).toMatchObject([{ code: 'ENOTDIR' }]);
  open();
  writeFileSync(path, stood.slice(0, -5));
  await print();
  await files.close();
  expect(readFileSync(path, 'utf8')).toBe(stood.slice(0, -5));
  expect(existsSync(join(dir, 'exports.clean'))).toBe(false);
  const again = new JournalFiles(
    { store: data.store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await again.repair(() => false);
  expect(await isWhole()).toBe(true);
  shut();
  await print();
  await print(2000);
  expect(failures.splice(0)).toMatchObject([{ code: 'ENOTDIR' }]);
  rmSync(dirname(path));
  expect(await data.store.deleteRun((await data.store.listRunIds({ limit: 1 }))[0] ?? '')).toBe('deleted');
  await again.close();
  expect(existsSync(join(dir, 'exports.clean'))).toBe(true);
  await data.close();
  expect(failures).toEqual([]);
});

test('a start removes the temporary file of a repair that was killed', async () => {
  const { data, files, print, path, isWhole } = await openPrinting();
  await print();
  const left = `${path}.2f1c0b7e-0000-4000-8000-00000000abcd.new`;
  writeFileSync(left, 'half of it');
  // Of another process, which may be working on it.
  const others = [`${path}.new`, join(dirname(path), 'result.json.2f1c0b7e-0000-4000-8000-00000000abcd.new')];
  for (const other of others) writeFileSync(other, 'x');
  await files.repair(() => false);
  expect([existsSync(left), ...others.map((other) => existsSync(other)), await isWhole()]).toEqual([
    false,
    true,
    true,
    true,
  ]);
  await files.close();
  await data.close();
});

test('a damaged journal is reported once, and later starts do not check its files again', async () => {
  const { data, files, end, print } = await openPrinting();
  await print();
  await end();
  await files.close();
  const store = alterStore(data.store, { readLines: () => Promise.reject(new DamagedDataError('torn')) });
  const again = new JournalFiles(
    { store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await again.repair(() => false);
  expect(failures).toMatchObject([{ name: 'DamagedDataError' }]);
  await again.close();
  expect(existsSync(join(dir, 'exports.clean'))).toBe(true);
  await data.close();
});

test('a file is repaired while its run prints, without being rewritten for new lines', async () => {
  const { data, files, print, path, isWhole } = await openPrinting();
  for (let piece = 0; piece < 60; piece += 1) await print(1000);
  await print();
  const before = statSync(path).ino;
  const done = new AbortController();
  const repairing = files.repair(() => false).then(() => done.abort());
  let printed = 0;
  for (; !done.signal.aborted && printed < 5000; printed += 1) {
    await print();
    // A run prints much slower than it is read.
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(done.signal.aborted).toBe(true);
  expect(printed).toBeGreaterThan(1);
  await repairing;
  expect(statSync(path).ino).toBe(before);
  await files.close();
  expect(await isWhole()).toBe(true);
  await data.close();
});

test('a repair at the start and a write at the same time leave a complete file that grows on', async () => {
  const { data, files, print, path, isWhole } = await openPrinting();
  for (let piece = 0; piece < 20; piece += 1) await print(1000);
  rmSync(path);
  await Promise.all([files.repair(() => false), files.write('run_0001'), files.repair(() => false)]);
  expect(await isWhole()).toBe(true);
  await print();
  await files.close();
  expect(await isWhole()).toBe(true);
  expect(failures).toEqual([]);
  await data.close();
});

test('much that was printed is in the files at once, little of it soon', async () => {
  const { data, files, print, isWhole } = await openPrinting();
  await print(20_000);
  expect(await isWhole()).toBe(true);
  await print();
  expect(await isWhole()).toBe(false);
  await files.close();
  expect(await isWhole()).toBe(true);
  await data.close();
});

test.each<[string, (path: string) => void]>([
  ['was removed', (path) => rmSync(path)],
  ['is a folder now', (path) => (rmSync(path), mkdirSync(path))],
  ['is a pipe now', (path) => (rmSync(path), void execFileSync('mkfifo', [path]))],
  ['is a link now', (path) => (rmSync(path), symlinkSync('/dev/null', path))],
])('a file that %s is rewritten from the store when more is appended', async (_how, change) => {
  const { data, files, print, end, path, isWhole } = await openPrinting();
  await print();
  await files.repair(() => false);
  change(path);
  await end();
  await files.close();
  expect(await isWhole()).toBe(true);
  expect(failures).toEqual([]);
  await data.close();
});

test('files removed after a clean end are rewritten when requested; those of waiting runs at the start', async () => {
  const { data, files, end, path, isWhole } = await openPrinting();
  await end();
  await files.repair(() => false);
  await files.close();
  rmSync(dirname(path), { recursive: true });
  const again = new JournalFiles(
    { store: data.store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await again.repair(() => false);
  expect(existsSync(path)).toBe(false);
  await again.restore('run_0001');
  expect(await isWhole()).toBe(true);
  const waiting = await data.store.createRun(newRun(2));
  if (!waiting.created) throw new Error(waiting.reason);
  await data.store.append(change(waiting.run, { set: { status: 'waiting_user' }, journal: flush(3, 1, 3, T0 + 9) }));
  await again.close();
  rmSync(join(dir, 'runs', 'run_0002'), { recursive: true });
  const third = new JournalFiles(
    { store: data.store, timers: systemTimers, dataDir: dir },
    (error) => failures.push(error),
    'single',
    async () => {},
    boot(),
  );
  await third.repair(() => false);
  await third.close();
  expect(existsSync(join(dir, 'runs', 'run_0002', 'rasp.jsonl'))).toBe(true);
  expect(failures).toEqual([]);
  await data.close();
});
