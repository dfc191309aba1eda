// Each check of verify finds the tampering that it is for, and the others report nothing false.
import { unpackBody } from '../../src/store/sqlite/pack-body.js';
import { appendFileSync, cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { beforeAll, expect, test, vi } from 'vitest';
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
let canceledId = '';

// A run of two turns with a result, and one that was canceled in its first turn.
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
  const pending = await bench.data.store.loadPendingInteraction(runId);
  await bench.orchestrator.reply(
    runId,
    { interaction_id: pending?.interaction_id ?? '', response: 'B' },
    { kind: 'user', name: 'ann' },
  );
  await bench.orchestrator.quiet();
  expect((await bench.data.store.loadRun(runId))?.status).toBe('succeeded');
  const { run_id: canceled } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[answer Hello.]][[hang]]',
    execution_mode: 'interactive',
    permission: 'full',
  });
  canceledId = canceled;
  await vi.waitFor(
    async () =>
      expect((await bench.data.store.readJournal(canceled, 'rasp', { limit: 100 })).join()).toContain('agent.message'),
    { timeout: 20_000 },
  );
  await bench.orchestrator.cancel(canceled, { kind: 'user', name: 'ann' });
  expect((await bench.data.store.loadRun(canceled))?.status).toBe('canceled');
  await bench.close();
});

// The findings in a copy after a change, check by check.
async function find(
  tamper: (place: { data: string; folder: ReturnType<typeof runFolder>; db: Database }) => void,
  id = runId,
): Promise<Record<string, string>> {
  const data = join(createRoot(), 'data');
  cpSync(join(original, 'data'), data, { recursive: true });
  const db = await openDatabase(join(data, 'parley.db'));
  tamper({ data, folder: runFolder(data, id), db });
  db.close();
  const reader = await openForReading(data);
  const run = await reader?.store.loadRun(id);
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

// Rewrites the first match in the stored text.
function rewrite(db: Database, protocol: 'rasp' | 'fcmp', from: string | RegExp, to: string): void {
  const rows = db
    .prepare('SELECT rowid AS id, body, packed FROM segments WHERE run_id = ? AND protocol = ? ORDER BY seq_from')
    .all(runId, protocol) as { id: number; body: Uint8Array; packed: number }[];
  for (const { id, ...packed } of rows) {
    const text = Buffer.from(unpackBody(packed)).toString();
    const changed = text.replace(from, () => to);
    if (changed === text) continue;
    db.prepare('UPDATE segments SET body = ?, packed = 0 WHERE rowid = ?').run(Buffer.from(changed), id);
    return;
  }
  expect.fail(`${String(from)} is not in the database`);
}

test('a byte in a packed piece of the journal, and its stored length', async () => {
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
  const problems = async (): Promise<string[]> => {
    const reader = await openForReading(data);
    const run = await reader?.store.loadRun(id);
    if (!reader || !run) throw new Error('the run is gone');
    const checks = await verifyRun(reader.store, data, run);
    await reader.close();
    return checks.filter(({ ok }) => !ok).map(({ name }) => name);
  };
  expect(await problems()).toEqual([]);
  const missed: string[] = [];
  for (const { id: row, body, packed } of pieces) {
    const update = db.prepare('UPDATE segments SET body = ?, packed = ? WHERE rowid = ?');
    for (let at = 0; at < body.length; at += Math.ceil(body.length / 12)) {
      const flipped = Buffer.from(body);
      flipped[at] = (flipped[at] ?? 0) ^ 0x10;
      update.run(flipped, packed, row);
      if (!saysTheSame({ body, packed }, flipped) && (await problems()).length === 0)
        missed.push(`byte ${at} of row ${row}`);
    }
    for (const length of [0, packed - 1, packed + 1, 2 ** 40, 2n ** 62n, -(2n ** 62n)]) {
      update.run(body, length, row);
      if ((await problems()).length === 0) missed.push(`length ${length} of row ${row}`);
    }
    update.run(body, packed, row);
  }
  expect(missed).toEqual([]);
  expect(await problems()).toEqual([]);
  db.close();
});

// A copy with a truncated file; `write` writes the rest of it.
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
    const checks = await verifyRun(reader.store, data, run, {
      waitForFiles: waitForFiles(timers, async () => hasWriter()),
    });
    return [checks.filter(({ ok }) => !ok).map(({ name }) => name), waits];
  };
  expect(await verify(() => false, never)).toEqual([['files'], 0]);
  const [first, waits] = await verify(() => true, never);
  expect([first, waits > 10 && waits < 100]).toEqual([['files'], true]);
  expect(
    await verify(
      () => true,
      (waited) => void (waited === 3 && write()),
    ),
  ).toEqual([[], 3]);
  truncateSync(path, 10);
  // Written completely, and its writer exits just after it was read.
  expect(await verify(() => (write(), false), never)).toEqual([[], 0]);
  // A changed file is not late: nothing is waited for.
  flipByte(path, 10);
  expect(await verify(() => true, never)).toEqual([['files'], 0]);
  await reader.close();
});

test('the command waits for them beside a server, and reports at once without one', async () => {
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

const differing = (name: string) => ({
  files: `${name} differs from the database: it was truncated by a crash, or altered`,
});
const set = (db: Database, assignment: string): void =>
  void db.prepare(`UPDATE runs SET ${assignment} WHERE run_id = ?`).run(runId);

test('nothing is wrong with a run that nobody touched', async () => {
  expect(await find(() => {})).toEqual({});
});

test('a byte in a log', async () => {
  expect(await find(({ folder }) => flipByte(folder.attempt(1).logs.stdout, 40))).toEqual({
    hashes: 'turn 1 stdout: the log was altered',
  });
  expect(await find(({ folder }) => flipByte(folder.attempt(1).logs.stderr, 0))).toEqual({
    hashes: 'turn 1 stderr: the log was altered',
  });
});

test('a log that is too short, too long or missing', async () => {
  for (const tamper of [
    (log: string) => truncateSync(log, 10),
    (log: string) => appendFileSync(log, 'more'),
    (log: string) => rmSync(log),
  ]) {
    const problems = await find(({ folder }) => tamper(folder.attempt(2).logs.stdout));
    expect(problems).toEqual({
      hashes: expect.stringMatching(/turn 2 stdout: the log has \d+ bytes, but \d+ were read/) as string,
      cover: expect.stringMatching(/turn 2 stdout: events cover/) as string,
    });
  }
});

test('a word in a stored event', async () => {
  const problems = await find(({ db }) => rewrite(db, 'rasp', /(?<=message.*)Hello\./, 'Hallo.'));
  expect(Object.keys(problems)).toEqual(['digest', 'conversation', 'files']);
  expect(Object.keys(await find(({ db }) => rewrite(db, 'rasp', 'Hello.', 'Hallo.')))).toEqual([
    'digest',
    'rows',
    'conversation',
    'files',
  ]);
  expect(problems['digest']).toMatch(
    /the stored events have the digest [0-9a-f]{64}, but the row of the run says [0-9a-f]{64}/,
  );
  expect(problems['files']).toMatch(/rasp\.jsonl differs from the database/);
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
  const problems = await find(({ db }) =>
    rewrite(db, 'rasp', /"ts":"\d{4}(?=[^\n]*agent\.message\.final)/, '"ts":"1999'),
  );
  expect(problems['order']).toMatch(/event \d+ is dated earlier than the event before it/);
  expect(problems).not.toHaveProperty('form');
});

test('an event that is no event, and one that is not even JSON', async () => {
  const problems = await find(({ db }) =>
    rewrite(db, 'rasp', '"protocol_version":"rasp/1.0"', '"protocol_version":"rasp/9.9"'),
  );
  expect(problems['form']).toMatch(/event 1: .*protocol_version/);
  expect(problems).toHaveProperty('digest');
  expect(await find(({ db }) => rewrite(db, 'rasp', '{"protocol_version"', '{protocol_version'))).toEqual({
    journal: 'event 1 is not JSON',
  });
});

test('a status, an error or a result that contradicts the events', async () => {
  expect(await find(({ db }) => set(db, "status = 'failed'"))).toEqual({
    chart: 'the events end in succeeded, but the row of the run says failed',
  });
  expect(await find(({ db }) => set(db, `result_json = '{"n":2}'`))).toEqual({
    chart: 'the result in the row of the run differs from its last event',
  });
  expect(await find(({ db }) => set(db, `error_json = '{"code":"X","message":"x"}'`))).toEqual({
    chart: 'the error in the row of the run differs from its last event',
  });
});

test('a step that the chart does not have', async () => {
  const problems = await find(({ db }) =>
    rewrite(db, 'rasp', '"trigger":"turn.needs_input"', '"trigger":"turn.succeeded"'),
  );
  expect(problems['chart']).toMatch(
    /the chart has no step from running for "running to waiting_user by turn\.succeeded"/,
  );
});

test('a head that was rewritten', async () => {
  expect(Object.keys(await find(({ db }) => set(db, `digest = '${'0'.repeat(64)}'`)))).toEqual(['digest']);
  expect(Object.keys(await find(({ db }) => set(db, 'rasp_seq = rasp_seq + 1')))).toEqual(['order']);
});

test('a changed or missing result file', async () => {
  expect(await find(({ folder }) => flipByte(join(folder.path, 'result.json'), 6))).toEqual({
    result: 'result.json was altered',
  });
  expect(await find(({ folder }) => rmSync(join(folder.path, 'result.json')))).toEqual({
    result: 'result.json is missing',
  });
});

test('a journal file that is torn, longer or gone: the database has it all', async () => {
  expect(await find(({ folder }) => truncateSync(join(folder.path, 'rasp.jsonl'), 500))).toEqual(
    differing('rasp.jsonl'),
  );
  expect(await find(({ folder }) => appendFileSync(join(folder.path, 'fcmp.jsonl'), '{}\n'))).toEqual(
    differing('fcmp.jsonl'),
  );
  expect(await find(({ folder }) => rmSync(join(folder.path, 'fcmp.jsonl')))).toEqual(differing('fcmp.jsonl'));
});

// Each changes one column that is folded from the events.
const RUNS = 'UPDATE runs SET';
const QUESTIONS = 'UPDATE interactions SET';
const SESSIONS = 'UPDATE request_interactive_runtime SET session_handle_json =';
test.each([
  ['the attempt', `${RUNS} attempt_number = 1`, /the run is in turn 1, but its events are in turn 2/],
  [
    'the time waited',
    `${RUNS} waited_ms = waited_ms + 1`,
    /the questions waited \d+ ms, but the row of the run says \d+/,
  ],
  [
    'a question',
    `${QUESTIONS} question_json = json_set(question_json, '$.prompt', 'Who?')`,
    /its text or options differ from its event/,
  ],
  [
    'the time of a question',
    `${QUESTIONS} asked_at = asked_at - 1, due_at = due_at - 1`,
    /its time differs from its event, 2/,
  ],
  [
    'the deadline of a question',
    `${QUESTIONS} due_at = due_at + 1000`,
    /its deadline differs from the timeout of the run/,
  ],
  ['who decides a question', `${QUESTIONS} decides = 1 - decides`, /its decision on timeout differs/],
  [
    'the state of a question',
    `${QUESTIONS} state = 'auto_decided'`,
    /its state is auto_decided, but the events say answered/,
  ],
  [
    'an answer',
    `${QUESTIONS} resolution_json = json_set(resolution_json, '$.response', 'A')`,
    /its answer differs from the recorded event/,
  ],
  [
    'who answered',
    `${QUESTIONS} resolution_json = json_set(resolution_json, '$.actor.name', 'eve')`,
    /its answer differs from the recorded event/,
  ],
  [
    'the time of an answer',
    `${QUESTIONS} resolution_json = json_set(resolution_json, '$.at', json_extract(resolution_json, '$.at') + 1)`,
    /the time of its answer differs from its event, 2/,
  ],
  ['a question that is missing', 'DELETE FROM interactions', /question \w+ is missing/],
  [
    'the session',
    `${SESSIONS} json_set(session_handle_json, '$.handle_value', 'x')`,
    /differs from the one in the events/,
  ],
  [
    'the attempt of the session',
    `${SESSIONS} json_set(session_handle_json, '$.created_at_attempt', 2)`,
    /differs from the one in the events/,
  ],
  ['a session that is missing', `${SESSIONS} NULL`, /differs from the one in the events/],
  ['the counts of a turn', 'UPDATE turns SET units = units + 1', /the counts of its turns differ from its events/],
  ['the warnings of a turn', `UPDATE turns SET warnings_json = '{"X":1}'`, /the counts of its turns/],
  ['a turn that is missing', 'DELETE FROM turns WHERE attempt_number = 2', /the counts of its turns/],
  [
    'the range of a segment',
    'UPDATE segments SET ts_to = ts_from - 1',
    /rasp: the time of line \d+ is outside the time range of its segment/,
  ],
])('verify finds a changed row: %s', async (_what, sql, finding) => {
  expect(await find(({ db }) => db.exec(sql))).toEqual({ rows: expect.stringMatching(finding) as string });
});

test('a cancel request must be that of its event; one without an event must be marked as unrecorded', async () => {
  expect(await find(() => {}, canceledId)).toEqual({});
  const other = `'{"at":1,"actor":null}'`;
  expect(await find(({ db }) => set(db, `cancel_requested_json = ${other}`))).toEqual({
    rows: 'the cancel request of the run differs from its event',
  });
  const unrecorded = `'{"at":1,"actor":null,"unrecorded":true}'`;
  expect(await find(({ db }) => set(db, `cancel_requested_json = ${unrecorded}`))).toEqual({});
  expect(await find(({ db }) => db.exec(`${RUNS} cancel_requested_json = ${other}`), canceledId)).toEqual({
    rows: 'the cancel request of the run differs from its event',
  });
  expect(await find(({ db }) => db.exec(`${RUNS} cancel_requested_json = NULL`), canceledId)).toHaveProperty('rows');
});

test('a live run is checked at one point in time while it stores more events', async () => {
  const data = join(createRoot(), 'data');
  cpSync(join(original, 'data'), data, { recursive: true });
  const reader = await openForReading(data);
  const run = await reader?.store.loadRun(runId);
  if (!reader || !run) throw new Error('the run is gone');
  // The row at the time when half of the journal was stored.
  const early = { ...run, status: 'running', heads: { ...run.heads, rasp_seq: 5, fcmp_seq: 4 } } as typeof run;
  expect((await verifyRun(reader.store, data, early)).filter(({ ok }) => !ok)).toEqual([]);
  await reader.close();
});
