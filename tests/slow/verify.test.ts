// Each check of verify finds the tampering it is there for, and the others do not complain wrongly.
import { appendFileSync, cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { beforeAll, expect, test } from 'vitest';
import { verifyCommand } from '../../src/cli/reading/audit.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { waitForFiles } from '../../src/journal/wait-for-files.js';
import { readStartTime } from '../../src/process/process-table.js';
import { openDataDir, openForReading } from '../../src/store/sqlite/data-dir.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { createIo } from '../support/io.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { saysTheSame } from '../support/packed-pieces.js';

const CHECKS = ['digest', 'order', 'form', 'chart', 'rows', 'hashes', 'cover', 'conversation', 'files', 'result'];
let original = '';
let runId = '';

// A run of two turns with a result.
beforeAll(async () => {
  original = createRoot();
  const bench = await openBench(original);
  const { run_id: created } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[answer Hello.]][[utf8]][[ask Which?|A|B]][[answer Then.]][[done {"n":1}]]',
    execution_mode: 'interactive',
    cwd: original,
    permission: 'full',
  });
  runId = created;
  await bench.orchestrator.quiet();
  const pending = await bench.data.store.loadPending(runId);
  await bench.orchestrator.reply(
    runId,
    { interaction_id: pending?.interaction_id ?? '', response: 'B' },
    { kind: 'user', name: 'ann' },
  );
  await bench.orchestrator.quiet();
  expect((await bench.data.store.loadRun(runId))?.status).toBe('succeeded');
  await bench.close();
});

// What is found in a copy after something was done to it: check by check, what is wrong.
async function find(
  tamper: (place: { data: string; folder: ReturnType<typeof runFolder>; db: Database }) => void,
): Promise<Record<string, string>> {
  const data = join(createRoot(), 'data');
  cpSync(join(original, 'data'), data, { recursive: true });
  const db = await openDatabase(join(data, 'parley.db'));
  tamper({ data, folder: runFolder(data, runId), db });
  db.close();
  const reader = await openForReading(data);
  const run = await reader?.store.loadRun(runId);
  if (!reader || !run) throw new Error('the run is gone');
  try {
    const checks = await verifyRun(reader.store, data, run);
    if (checks.length > 1) expect(checks.map(({ name }) => name)).toEqual(CHECKS);
    return Object.fromEntries(checks.filter(({ ok }) => !ok).map(({ name, finding }) => [name, finding]));
  } finally {
    await reader.close();
  }
}

function flipByte(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

// Rewrites the stored text where something stands for the first time.
function rewrite(db: Database, protocol: 'rasp' | 'fcmp', from: string | RegExp, to: string): void {
  const rows = db
    .prepare('SELECT rowid AS id, body FROM segments WHERE protocol = ? ORDER BY seq_from')
    .all(protocol) as { id: number; body: Uint8Array }[];
  for (const { id, body } of rows) {
    const text = Buffer.from(body).toString();
    const changed = text.replace(from, () => to);
    if (changed === text) continue;
    db.prepare('UPDATE segments SET body = ? WHERE rowid = ?').run(Buffer.from(changed), id);
    return;
  }
  expect.fail(`${String(from)} is not in the database`);
}

test('a byte in a piece of the journal that is packed, and what is said of its length', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: `[[events 400 64]][[answer ${'a long answer, and '.repeat(4000)}]]`,
    execution_mode: 'auto',
    cwd: root,
    permission: 'full',
  });
  await bench.orchestrator.quiet();
  await bench.close();
  const data = join(root, 'data');
  const db = await openDatabase(join(data, 'parley.db'));
  const pieces = db.prepare('SELECT rowid AS id, body, packed FROM segments WHERE packed > 0').all() as {
    id: number;
    body: Uint8Array;
    packed: number;
  }[];
  expect(pieces.length).toBeGreaterThan(1);
  const found = async (): Promise<string[]> => {
    const reader = await openForReading(data);
    const run = await reader?.store.loadRun(id);
    if (!reader || !run) throw new Error('the run is gone');
    const checks = await verifyRun(reader.store, data, run);
    await reader.close();
    return checks.filter(({ ok }) => !ok).map(({ name }) => name);
  };
  expect(await found()).toEqual([]);
  const missed: string[] = [];
  for (const { id: row, body, packed } of pieces) {
    const update = db.prepare('UPDATE segments SET body = ?, packed = ? WHERE rowid = ?');
    for (let at = 0; at < body.length; at += Math.ceil(body.length / 12)) {
      const flipped = Buffer.from(body);
      flipped[at] = (flipped[at] ?? 0) ^ 0x10;
      update.run(flipped, packed, row);
      if (!saysTheSame({ body, packed }, flipped) && (await found()).length === 0)
        missed.push(`byte ${at} of row ${row}`);
    }
    for (const length of [0, packed - 1, packed + 1, 2 ** 40, 2n ** 62n, -(2n ** 62n)]) {
      update.run(body, length, row);
      if ((await found()).length === 0) missed.push(`length ${length} of row ${row}`);
    }
    update.run(body, packed, row);
  }
  expect(missed).toEqual([]);
  expect(await found()).toEqual([]);
  db.close();
});

// A copy with a file that ends early; `write` writes the rest of it.
async function openShort(): Promise<{ data: string; path: string; write: () => void }> {
  const data = join(createRoot(), 'data');
  cpSync(join(original, 'data'), data, { recursive: true });
  const path = join(runFolder(data, runId).path, 'fcmp.jsonl');
  const whole = readFileSync(path);
  truncateSync(path, whole.length - 40);
  return { data, path, write: () => writeFileSync(path, whole) };
}

const never = () => {};

test('files that are a moment behind are waited for while somebody writes them, and no longer', async () => {
  const { data, path, write } = await openShort();
  const reader = await openForReading(data);
  const run = await reader?.store.loadRun(runId);
  if (!reader || !run) throw new Error('the run is gone');
  const verify = async (hasWriter: () => boolean, onWait: (waits: number) => void): Promise<[string[], number]> => {
    let waits = 0;
    const timers = { set: (_ms: number, fire: () => void) => (onWait((waits += 1)), setImmediate(fire), () => {}) };
    const checks = await verifyRun(
      reader.store,
      data,
      run,
      waitForFiles(timers, async () => hasWriter()),
    );
    return [checks.filter(({ ok }) => !ok).map(({ name }) => name), waits];
  };
  expect(await verify(() => false, never)).toEqual([['files'], 0]);
  const [found, waits] = await verify(() => true, never);
  expect([found, waits > 10 && waits < 100]).toEqual([['files'], true]);
  expect(
    await verify(
      () => true,
      (waited) => void (waited === 3 && write()),
    ),
  ).toEqual([[], 3]);
  truncateSync(path, 10);
  // Written, and its writer is gone, just after it was read.
  expect(await verify(() => (write(), false), never)).toEqual([[], 0]);
  // Changed is not behind: nothing is waited for.
  flipByte(path, 10);
  expect(await verify(() => true, never)).toEqual([['files'], 0]);
  await reader.close();
});

test('the command waits for them beside a server, and without one it tells at once', async () => {
  const { data, write } = await openShort();
  const verify = async (onWait: () => void): Promise<[number, number]> => {
    let waits = 0;
    const timers = { set: (_ms: number, fire: () => void) => ((waits += 1), onWait(), setImmediate(fire), () => {}) };
    const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    return [await verifyCommand(runId, { data }, createIo(streams, { timers })), waits];
  };
  expect(await verify(never)).toEqual([1, 0]);
  const server = await openDataDir(data, { pid: process.pid, start_time: readStartTime(process.pid) });
  expect(await verify(write)).toEqual([0, 1]);
  await server.close();
});

const mended = (name: string) => ({
  files: `${name} is not what is stored: a crash cut it off, or somebody changed it`,
});
const set = (db: Database, assignment: string): void =>
  void db.prepare(`UPDATE runs SET ${assignment} WHERE run_id = ?`).run(runId);

test('nothing is wrong with a run that nobody touched', async () => {
  expect(await find(() => {})).toEqual({});
});

test('a byte in a log', async () => {
  expect(await find(({ folder }) => flipByte(folder.attempt(1).logs.stdout, 40))).toEqual({
    hashes: 'attempt 1 stdout: the log was changed',
  });
  expect(await find(({ folder }) => flipByte(folder.attempt(1).logs.stderr, 0))).toEqual({
    hashes: 'attempt 1 stderr: the log was changed',
  });
});

test('a log that is too short, too long or gone', async () => {
  for (const tamper of [
    (log: string) => truncateSync(log, 10),
    (log: string) => appendFileSync(log, 'more'),
    (log: string) => rmSync(log),
  ]) {
    const found = await find(({ folder }) => tamper(folder.attempt(2).logs.stdout));
    expect(found).toEqual({
      hashes: expect.stringMatching(/attempt 2 stdout: the log has \d+ bytes, \d+ were read/) as string,
      cover: expect.stringMatching(/attempt 2 stdout: events cover/) as string,
    });
  }
});

test('a word in a stored event', async () => {
  const found = await find(({ db }) => rewrite(db, 'rasp', /(?<=message.*)Hello\./, 'Hallo.'));
  expect(Object.keys(found)).toEqual(['digest', 'conversation', 'files']);
  expect(Object.keys(await find(({ db }) => rewrite(db, 'rasp', 'Hello.', 'Hallo.')))).toEqual([
    'digest',
    'rows',
    'conversation',
    'files',
  ]);
  expect(found['digest']).toMatch(/the stored events give [0-9a-f]{64}, the run says [0-9a-f]{64}/);
  expect(found['files']).toMatch(/rasp\.jsonl is not what is stored/);
});

test('a word in what people are shown', async () => {
  expect(Object.keys(await find(({ db }) => rewrite(db, 'fcmp', 'Hello.', 'Hallo.')))).toEqual([
    'conversation',
    'files',
  ]);
});

test('an event that was removed, alone or with all that was stored beside it', async () => {
  const one = await find(({ db }) => rewrite(db, 'rasp', /^.*agent\.message\.final.*\n?/m, ''));
  expect(Object.keys(one)).toEqual(expect.arrayContaining(['digest', 'order', 'cover', 'conversation', 'files']));
  expect(one).not.toHaveProperty('hashes');
  expect(one).not.toHaveProperty('result');
  const last = await find(
    ({ db }) =>
      void db.exec(
        `DELETE FROM segments
         WHERE protocol = 'rasp' AND seq_from = (SELECT max(seq_from) FROM segments WHERE protocol = 'rasp')`,
      ),
  );
  expect(Object.keys(last)).toEqual(expect.arrayContaining(['digest', 'order', 'chart', 'conversation', 'files']));
});

test('an event in the wrong order of time', async () => {
  const found = await find(({ db }) => rewrite(db, 'rasp', /"ts":"\d{4}(?=[^\n]*agent\.message\.final)/, '"ts":"1999'));
  expect(found['order']).toMatch(/the time of event \d+ is before that of the one before/);
  expect(found).not.toHaveProperty('form');
});

test('an event that is no event, and one that is not even JSON', async () => {
  const found = await find(({ db }) =>
    rewrite(db, 'rasp', '"protocol_version":"rasp/1.0"', '"protocol_version":"rasp/9.9"'),
  );
  expect(found['form']).toMatch(/event 1: .*protocol_version/);
  expect(found).toHaveProperty('digest');
  expect(await find(({ db }) => rewrite(db, 'rasp', '{"protocol_version"', '{protocol_version'))).toEqual({
    journal: 'event 1 is not JSON',
  });
});

test('a status, an error or a result that the events do not tell', async () => {
  expect(await find(({ db }) => set(db, "status = 'failed'"))).toEqual({
    chart: 'the events end in succeeded, the run is failed',
  });
  expect(await find(({ db }) => set(db, `result_json = '{"n":2}'`))).toEqual({
    chart: 'the result of the run is not that of its last event',
  });
  expect(await find(({ db }) => set(db, `error_json = '{"code":"X","message":"x"}'`))).toEqual({
    chart: 'the error of the run is not that of its last event',
  });
});

test('a step that the chart does not have', async () => {
  const found = await find(({ db }) =>
    rewrite(db, 'rasp', '"trigger":"turn.needs_input"', '"trigger":"turn.succeeded"'),
  );
  expect(found['chart']).toMatch(/running to waiting_user by turn\.succeeded is no step from running/);
});

test('a head that was rewritten', async () => {
  expect(Object.keys(await find(({ db }) => set(db, `digest = '${'0'.repeat(64)}'`)))).toEqual(['digest']);
  expect(Object.keys(await find(({ db }) => set(db, 'rasp_seq = rasp_seq + 1')))).toEqual(['order']);
});

test('a result file that was changed, or that is gone', async () => {
  expect(await find(({ folder }) => flipByte(join(folder.path, 'result.json'), 6))).toEqual({
    result: 'result.json was changed',
  });
  expect(await find(({ folder }) => rmSync(join(folder.path, 'result.json')))).toEqual({
    result: 'result.json is gone',
  });
});

test('a journal file that is torn, longer or gone: the database has it all', async () => {
  expect(await find(({ folder }) => truncateSync(join(folder.path, 'rasp.jsonl'), 500))).toEqual(mended('rasp.jsonl'));
  expect(await find(({ folder }) => appendFileSync(join(folder.path, 'fcmp.jsonl'), '{}\n'))).toEqual(
    mended('fcmp.jsonl'),
  );
  expect(await find(({ folder }) => rmSync(join(folder.path, 'fcmp.jsonl')))).toEqual(mended('fcmp.jsonl'));
});
