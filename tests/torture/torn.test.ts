// Tears the last write of every kind of file, as a power cut does: cut short, or with zeros at the end. Parley starts,
// acknowledged data is there, derivable files are restored, and verify reports losses. PARLEY_TORN_CUTS: number of
// positions per file, or all of its last record if there are fewer.
import { change } from '../store/conformance.js';
import fs, {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { replaceFile } from '../../src/files/replace-file.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord } from '../../src/store/store.js';
import { createSite, start } from '../support/command.js';
import { createRoot, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { chance, Figures, SEED } from '../support/torture.js';

const CUTS = Number(process.env['PARLEY_TORN_CUTS'] ?? 1);

// The place of each kind of file, how it is written, and which checks of verify may report something when its end is
// missing. Files that are on disk before a state is stored cannot lose it in a power failure, and are torn here
// nevertheless. The database has its own test below, and so have the files of a server. The locks (lock.db) are empty,
// so nothing of them can be torn. exports.clean: tests/slow/continue.test.ts. asks.jsonl: tests/ask.
const KINDS = [
  {
    file: 'ended/attempts/2/stdout.log',
    written: 'appended; on the disk before the state',
    expected: ['hashes', 'cover'],
  },
  {
    file: 'ended/attempts/2/stderr.log',
    written: 'appended; on the disk before the state',
    expected: ['hashes', 'cover'],
  },
  { file: 'ended/rasp.jsonl', written: 'appended after the database', expected: [] },
  { file: 'ended/fcmp.jsonl', written: 'appended after the database', expected: [] },
  { file: 'ended/result.json', written: 'replaced; on the disk before the state', expected: ['result'] },
  { file: 'ended/attempts/2/command.json', written: 'once; for people', expected: [] },
  {
    file: 'waits/attempts/1/stdout.log',
    written: 'appended; on the disk before the state',
    expected: ['hashes', 'cover'],
  },
  { file: 'waits/rasp.jsonl', written: 'appended after the database', expected: [] },
  {
    file: 'cut/attempts/1/stdout.log',
    written: 'appended before the database; not synced while a turn runs',
    expected: ['hashes', 'cover', 'conversation'],
  },
  { file: 'cut/rasp.jsonl', written: 'appended after the database', expected: [] },
  {
    file: 'stays/agents/main/runtime/events.jsonl',
    written: 'appended; on the disk before the state',
    expected: ['hashes', 'cover'],
  },
  { file: 'stays/agents/main/runtime/requests.jsonl', written: 'appended before it is sent; never read', expected: [] },
  { file: 'stays/agents/main/session.json', written: 'replaced', expected: [] },
  { file: 'stays/fcmp.jsonl', written: 'appended after the database', expected: [] },
  { file: 'writer.json', written: 'replaced; for people', expected: [] },
] as const;

type Name = 'ended' | 'waits' | 'cut' | 'stays';
const ids = {} as Record<Name, string>;
const figures = new Figures('torn');
let original = '';

async function create(bench: Bench, engine: string, prompt: string): Promise<string> {
  return (await bench.orchestrator.create({ engine, prompt, execution_mode: 'interactive', permission: 'full' }))
    .run_id;
}

const waits = async (bench: Bench, id: string) =>
  expect((await bench.orchestrator.waitUntilIdle(id)).status).toBe('waiting_user');

async function answer(bench: Bench, runId: string, response: unknown): Promise<RunRecord> {
  const pending = await bench.data.store.loadPendingInteraction(runId);
  await bench.orchestrator.reply(runId, {
    interaction_id: pending?.interaction_id ?? '',
    response: response as string,
  });
  return bench.orchestrator.waitUntilIdle(runId);
}

// One of each: ended, waiting, in the middle of a turn, and waiting with a process.
beforeAll(async () => {
  const root = createRoot();
  const bench = await openBench(root);
  ids.ended = await create(
    bench,
    'codex',
    '[[answer Hello.]][[stderr 2]][[ask Which?|A|B]][[answer Then.]][[stderr 2]][[done {"n":1}]]',
  );
  await waits(bench, ids.ended);
  expect((await answer(bench, ids.ended, 'A')).status).toBe('succeeded');
  ids.waits = await create(bench, 'codex', '[[answer Hello.]][[ask Which?|A|B]][[done {"n":2}]]');
  ids.stays = await create(bench, 'codex-app-server', '[[approve echo hi]] [[done {"n":3}]]');
  await waits(bench, ids.waits);
  await waits(bench, ids.stays);
  ids.cut = await create(bench, 'codex', '[[answer One.]][[answer Two.]][[answer Three.]][[hang]]');
  while (
    !(await bench.data.store.readJournal(ids.cut, 'rasp', { limit: 1000 })).some((line) => line.includes('"Three."'))
  )
    await new Promise((resolve) => setImmediate(resolve));
  original = createRoot();
  cpSync(root, original, { recursive: true });
  await bench.close();
  expect(startsIn(root).length).toBeGreaterThan(3);
});

afterAll(() => figures.tell());

function copyOf(): string {
  const root = createRoot();
  cpSync(original, root, { recursive: true });
  return root;
}

const pathOf = (root: string, file: string): string => {
  const [name = '', ...rest] = file.split('/');
  return rest.length === 0 ? join(root, 'data', file) : join(root, 'data', 'runs', ids[name as Name], ...rest);
};

type Tear = readonly [how: string, (bytes: Buffer, at: number) => Buffer];
const TEARS: readonly Tear[] = [
  ['cut', (bytes, at) => bytes.subarray(0, at)],
  ['zeros', (bytes, at) => Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)])],
];

// Within the last record: its last line, or the whole file if it is one record.
function placesIn(bytes: Buffer, number: number): number[] {
  const begin = bytes.subarray(0, -1).lastIndexOf(0x0a) + 1;
  const all = Array.from({ length: bytes.length - begin }, (_, at) => begin + at);
  const by = chance(number);
  while (all.length > CUTS) all.splice(by.below(all.length), 1);
  return all;
}

async function findingsOf(bench: Bench, id: string): Promise<string[]> {
  const run = (await bench.data.store.loadRun(id)) as RunRecord;
  return (await verifyRun(bench.data.store, bench.data.path, run)).filter(({ ok }) => !ok).map(({ name }) => name);
}

const STATES: Readonly<Record<Name, string>> = {
  ended: 'succeeded',
  waits: 'waiting_user',
  cut: 'failed',
  stays: 'waiting_user',
};

describe.each(KINDS)(`$file, which is $written (seed ${SEED})`, ({ file, expected }) => {
  test.each(TEARS)('%s', async (how, tear) => {
    const whole = readBytes(pathOf(original, file));
    for (const at of placesIn(whole, file.length + how.length)) {
      const root = copyOf();
      writeFileSync(pathOf(root, file), tear(whole, at));
      const bench = await openBench(root);
      const where = `${file}, ${how} at ${at} of ${whole.length}`;
      const torn: string[] = [];
      for (const name of Object.keys(ids) as Name[]) {
        expect((await bench.data.store.loadRun(ids[name]))?.status, `${name}: ${where}`).toBe(STATES[name]);
        const findings = await findingsOf(bench, ids[name]);
        if (findings.length === 0) continue;
        torn.push(name);
        expect(expected, `${name}: ${where}`).toEqual(expect.arrayContaining(findings));
      }
      // No other file is reported.
      expect(
        torn.filter((name) => !file.startsWith(`${name}/`)),
        where,
      ).toEqual([]);
      // Missing evidence is detected and reported.
      if (expected.length > 0 && !file.startsWith('cut/')) expect(torn, where).toHaveLength(1);
      figures.add(how === 'cut' ? 'cuts' : 'zero-filled ends');
      if (torn.length > 0) figures.add('losses told');
      await bench.close();
      rmSync(root, { recursive: true, force: true });
    }
  });
});

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

test('after a torn write people can still answer waiting questions', async () => {
  const root = copyOf();
  for (const file of ['waits/rasp.jsonl', 'stays/fcmp.jsonl', 'stays/agents/main/runtime/requests.jsonl'])
    truncateSync(pathOf(root, file), readBytes(pathOf(root, file)).length - 3);
  const bench = await openBench(root);
  expect((await answer(bench, ids.waits, 'B')).result).toEqual({ n: 2 });
  expect(await findingsOf(bench, ids.waits)).toEqual([]);
  await bench.close();
});

// The database contains everything up to the last acknowledged change; the change in progress is complete or absent.
test.each(TEARS)(`the log of the database, %s in its last transaction (seed ${SEED})`, async (how, tear) => {
  const root = copyOf();
  const wal = join('data', 'parley.db-wal');
  const bench = await openBench(root);
  await bench.orchestrator.close();
  const before = createRoot();
  cpSync(root, before, { recursive: true });
  const acknowledged = readBytes(join(before, wal)).length;
  const run = (await bench.data.store.loadRun(ids.waits)) as RunRecord;
  await bench.data.store.append(change(run, { now: 5, set: { cancel_requested: { at: 5, actor: null } } }));
  const written = readBytes(join(root, wal));
  await bench.data.close();
  expect(written.length).toBeGreaterThan(acknowledged);
  const by = chance(how.length);
  for (let time = 0; time < 5 * CUTS; time += 1) {
    const at = acknowledged + by.below(written.length - acknowledged);
    const copy = createRoot();
    cpSync(before, copy, { recursive: true });
    writeFileSync(join(copy, wal), tear(written, at));
    const data = await openDataDir(join(copy, 'data'), { pid: process.pid });
    const stored = await data.store.loadRun(ids.waits);
    expect({ ...stored, cancel_requested: null, updated_at: 0 }, `cut at ${at}`).toEqual({
      ...run,
      cancel_requested: null,
      updated_at: 0,
    });
    for (const name of Object.keys(ids) as Name[])
      expect(await data.store.recomputeDigest(ids[name])).toBe((await data.store.loadRun(ids[name]))?.heads.digest);
    await data.close();
    rmSync(copy, { recursive: true, force: true });
    figures.add('torn transactions');
  }
});

test('the database itself, torn where it was growing while its log was being put into it', async () => {
  for (let time = 0; time < CUTS; time += 1) {
    const root = copyOf();
    appendFileSync(
      join(root, 'data', 'parley.db'),
      Buffer.alloc(1 + chance(time).below(9000), time % 2 === 0 ? 0 : 0x5a),
    );
    const bench = await openBench(root);
    for (const name of Object.keys(ids) as Name[])
      expect([(await bench.data.store.loadRun(ids[name]))?.status, await findingsOf(bench, ids[name])]).toEqual([
        STATES[name],
        [],
      ]);
    await bench.close();
    figures.add('torn databases');
  }
});

const TOKENS = [{ name: 'ann', role: 'viewer', sha256: 'a'.repeat(64), created_at: '2026-01-01T00:00:00.000Z' }];
// The other files of a server. All of them are replaced atomically; if they are torn nevertheless, the server starts,
// or names the damaged file.
const SERVED = [
  ['token', 'prl_0123456789abcdef0123456789\n'],
  ['tokens.json', `${JSON.stringify(TOKENS, null, 2)}\n`],
  ['server.json', '{"pid":4194304,"url":"http://127.0.0.1:9"}\n'],
  ['writer.json', '{"pid":4194304,"start_time":"1"}'],
  ['parley.log', '{"ts":"2026-01-01T00:00:00.000Z","error":"x"}\n'],
] as const;

test.each(SERVED)(`a server starts, or names the file: %s (seed ${SEED})`, { timeout: 120_000 }, async (file, text) => {
  const site = createSite();
  mkdirSync(site.data, { mode: 0o700 });
  const by = chance(file.length);
  for (let time = 0; time < Math.ceil(CUTS / 4); time += 1) {
    const [, tear] = by.pick(TEARS);
    writeFileSync(join(site.data, file), tear(Buffer.from(text), by.below(text.length)), { mode: 0o600 });
    // An interrupted replacement may leave this file.
    writeFileSync(join(site.data, `${file}.new`), text.slice(0, 3));
    const server = start(site, ['serve', '--json', '--port', '0']);
    const serves = await server.waitFor('"type":"serving"').then(
      () => true,
      () => false,
    );
    server.child.kill('SIGTERM');
    const { code, stdout, stderr } = await server.ended;
    if (serves) expect([code, stderr.includes('internal error')]).toEqual([0, false]);
    else expect(stdout + stderr).toMatch(new RegExp(`DATA_DIR_UNUSABLE.*${file.replace('.', '\\.')}`));
    figures.add('torn files of a server');
  }
});

test('a file that is replaced is on the disk before it has its name', () => {
  const calls: string[] = [];
  const real = { fdatasyncSync: fs.fdatasyncSync, renameSync: fs.renameSync };
  Object.assign(fs, {
    fdatasyncSync: (file: number) => (calls.push('sync'), real.fdatasyncSync(file)),
    renameSync: (from: string, to: string) => (calls.push('rename'), real.renameSync(from, to)),
  });
  syncBuiltinESMExports();
  const path = join(createRoot(), 'file.json');
  try {
    replaceFile(path, 'whole');
  } finally {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  }
  expect([calls, readFileSync(path, 'utf8'), readdirSync(dirname(path))]).toEqual([
    ['sync', 'rename'],
    'whole',
    ['file.json'],
  ]);
});
