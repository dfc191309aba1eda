// Changes one thing in the stored data of an ended run: a bit, a line, a whole file, or a value of a row. verify finds
// it each time. The two tables here list the exceptions, with the reason. PARLEY_CORRUPTIONS: number of seeded changes
// of each file.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeDamage, verifyRun } from '../../src/audit/verify-run.js';
import { openForReading } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { PackedBody } from '../../src/store/sqlite/pack-body.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { createRoot, openBench, type Bench } from '../support/orchestrated.js';
import { saysTheSame } from '../support/packed-pieces.js';
import { chance, Figures, SEED, type Chance } from '../support/torture.js';

const EACH = Number(process.env['PARLEY_CORRUPTIONS'] ?? 1);
// A journal has many similar segments: the short form tests some of them.
const PIECES = EACH > 1 ? 1 : 5;
const KINDS = ['asks', 'stays'] as const;
type Kind = (typeof KINDS)[number];

// Files that verify does not check, and why its result is still correct.
const UNPROVED_FILES: readonly (readonly [RegExp, string])[] = [
  [/^home\//, "the engine's own: Parley reads only whether a session is there"],
  [/^workspace\//, "the agent's work, which anybody may go on with"],
  [/command\.json$/, 'for people; argv and folder are in lifecycle.turn.started, which is checked'],
  [/lock\.db$/, 'nothing is in it'],
  [/requests\.jsonl$/, 'the input of the engine: prompts and answers are in events, which are checked'],
  [/agents\/main\/session\.json$/, 'how to continue a thread in another process; the session is in an event'],
];

// Columns that verify does not check.
const UNPROVED_COLUMNS: Readonly<Record<string, string>> = {
  'runs.request_digest': 'tells whether a repeated request is the same; nothing is shown or played by it',
  'runs.engine': 'only to search by; the engine is in spec_json, which is proved',
  'interactions.engine': 'only to search by; the engine of its run is proved',
  'runs.epoch': 'one more than turns were begun is what a host leaves that took the run over',
  'runs.cancel_requested_json': 'a wish, which counts while a run is running; who canceled is in the events',
  'runs.created_at': 'for lists; the time of the first event is proved',
  'runs.updated_at': 'for lists; the time of the last event is proved',
  'runs.queued_at': 'the order of queued runs; this one has ended',
  'runs.crashes': 'how often a host crashed with the run; no event tells of a crash',
  'runs.at_work': 'whether a process is about to start or runs it; read at a start of Parley only',
  'run_labels.run_id': 'only to search by; the labels are in spec_json, which is proved',
  'run_labels.key': 'only to search by; the labels are in spec_json, which is proved',
  'run_labels.value': 'only to search by; the labels are in spec_json, which is proved',
  'turns.attempt_number': 'distinguishes rows; only their sums are shown, which are checked',
  'turns.completion': 'sums count only unknown ones, which are checked; each is in lifecycle.turn.ended',
  'turns.reason_code': 'so too',
  'request_interactive_runtime.effective_session_timeout_sec': 'not read; the timeout is in spec_json, which is proved',
  'request_interactive_runtime.updated_at': 'not read',
};

const ids = {} as Record<Kind | 'other', string>;
const figures = new Figures('corrupt');
let original = '';

async function play(bench: Bench, kind: Kind): Promise<string> {
  const asks = kind === 'asks';
  const { run_id: id } = await bench.orchestrator.create({
    engine: asks ? 'codex' : 'codex-app-server',
    prompt: asks
      ? '[[answer Hello.]][[utf8]][[stderr 2]][[ask Which?|A|B]][[answer Then.]][[done {"n":1}]]'
      : '[[approve echo hi]] [[answer Then.]] [[done {"n":2}]]',
    execution_mode: 'interactive',
    permission: 'full',
    labels: { team: 'blue' },
    request_id: `corrupt-${kind}-${Math.floor(performance.now() * 1000)}`,
  });
  await bench.orchestrator.quiet();
  const pending = await bench.data.store.loadPendingInteraction(id);
  await bench.orchestrator.reply(
    id,
    {
      interaction_id: pending?.interaction_id ?? '',
      response: asks ? 'B' : { decision: 'approve' },
      idempotency_key: 'once',
    },
    { kind: 'user', name: 'ann' },
  );
  await bench.orchestrator.quiet();
  expect((await bench.data.store.loadRun(id))?.status).toBe('succeeded');
  return id;
}

beforeAll(async () => {
  original = createRoot();
  const bench = await openBench(original);
  for (const kind of KINDS) ids[kind] = await play(bench, kind);
  ids.other = await play(bench, 'asks');
  await bench.close();
});

afterAll(() => figures.tell());

const copyOf = (): string => {
  const data = join(createRoot(), 'data');
  cpSync(join(original, 'data'), data, { recursive: true });
  return data;
};

// The checks that report something; a run that cannot even be read counts as found.
async function findBy(store: Store, data: string, runId: string): Promise<string[]> {
  const checks = await store
    .loadRun(runId)
    .then((run) => (run ? verifyRun(store, data, run) : [{ name: 'the run is gone', ok: false }]), describeDamage);
  return checks.filter(({ ok }) => !ok).map(({ name }) => name);
}

async function findIn(data: string, runId: string): Promise<string[]> {
  const reader = await openForReading(data);
  if (!reader) return ['nothing is there'];
  try {
    return await findBy(reader.store, data, runId);
  } finally {
    await reader.close();
  }
}

function filesOf(data: string, runId: string): string[] {
  const folder = join(data, 'runs', runId);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted();
}

const linesOf = (bytes: Buffer): string[] => bytes.toString('latin1').split(/(?<=\n)/);
const toBytes = (lines: readonly string[]): Buffer => Buffer.from(lines.join(''), 'latin1');

// Each returns the changed file; null: deleted.
const DEEDS: Readonly<Record<string, (bytes: Buffer, by: Chance, other: Buffer) => Buffer | null>> = {
  'bits flipped': (bytes, by) => {
    const changed = Buffer.from(bytes);
    const at = by.below(bytes.length);
    if (bytes.length > 0) changed[at] = (changed[at] ?? 0) ^ (1 << by.below(8));
    return changed;
  },
  'lines swapped': (bytes, by) => {
    const lines = linesOf(bytes);
    const at = by.below(Math.max(1, lines.length - 1));
    if (lines.length > 1) [lines[at], lines[at + 1]] = [lines[at + 1] ?? '', lines[at] ?? ''];
    return toBytes(lines);
  },
  'lines deleted': (bytes, by) => toBytes(linesOf(bytes).toSpliced(by.below(linesOf(bytes).length), 1)),
  'lines doubled': (bytes, by) => {
    const lines = linesOf(bytes);
    const at = by.below(lines.length);
    return toBytes(lines.toSpliced(at, 0, lines[at] ?? ''));
  },
  'lines appended': (bytes) => Buffer.concat([bytes, Buffer.from('{"more":true}\n')]),
  'files cut': (bytes, by) => bytes.subarray(0, by.below(bytes.length)),
  "files of another run's": (_bytes, _by, other) => other,
  'files removed': () => null,
};

describe.each(KINDS)(`in the files of a run that %s (seed ${SEED})`, (kind) => {
  test.each(Object.keys(DEEDS))('%s are found', async (deed) => {
    const data = copyOf();
    const runId = ids[kind];
    expect(await findIn(data, runId)).toEqual([]);
    const missed: string[] = [];
    for (const [number, name] of filesOf(data, runId).entries()) {
      if (UNPROVED_FILES.some(([pattern]) => pattern.test(name))) continue;
      const path = join(data, 'runs', runId, name);
      const bytes = readFileSync(path);
      const beside = join(data, 'runs', ids.other, name);
      for (let time = 0; time < EACH; time += 1) {
        const changed =
          DEEDS[deed]?.(
            bytes,
            chance(number, time, deed.length),
            existsSync(beside) ? readFileSync(beside) : Buffer.from('x'),
          ) ?? null;
        // Deleting an empty file changes nothing, nor does swapping two equal lines.
        if (changed === null ? bytes.length === 0 : changed.equals(bytes)) continue;
        if (changed === null) rmSync(path);
        else writeFileSync(path, changed);
        if ((await findIn(data, runId)).length === 0) missed.push(`${name}, time ${time}`);
        figures.add(deed);
        writeFileSync(path, bytes);
      }
    }
    expect(missed).toEqual([]);
  });
});

// Valid JSON that is no event must not prevent the report.
test.each(KINDS)('a bit flipped anywhere in the events of a run that %s is reported as a finding', async (kind) => {
  const data = copyOf();
  const db = await openDatabase(join(data, 'parley.db'));
  const store = new SqliteStore(db, loadGroups(db));
  const pieces = db.prepare('SELECT rowid AS id, body, packed FROM segments WHERE run_id = ?').all(ids[kind]) as ({
    id: number;
  } & PackedBody)[];
  const update = db.prepare('UPDATE segments SET body = ? WHERE rowid = ?');
  const by = chance(7, KINDS.indexOf(kind));
  const run = (await store.loadRun(ids[kind])) as RunRecord;
  const missed: string[] = [];
  for (let time = 0; time < 60 * EACH; time += 1) {
    const { id, body, packed } = pieces[by.below(pieces.length)] ?? { id: 0, body: Buffer.alloc(1), packed: 0 };
    const [at, bit] = [by.below(body.length), by.below(8)];
    const flipped = Buffer.from(body);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
    update.run(flipped, id);
    // For any input it reports and does not throw.
    const ok = (await verifyRun(store, data, run)).every((check) => check.ok);
    if (ok && !saysTheSame({ body, packed }, flipped)) missed.push(`bit ${bit} of byte ${at} in piece ${id}`);
    figures.add('bits of events flipped');
    update.run(body, id);
  }
  expect(missed).toEqual([]);
  db.close();
});

const TABLES: Readonly<Record<string, string>> = {
  runs: 'run_id = ?',
  run_labels: 'run_id = ?',
  interactions: 'run_id = ?',
  turns: 'run_id = ?',
  segments: 'run_id = ?',
  request_interactive_runtime: 'request_id = (SELECT request_id FROM runs WHERE run_id = ?)',
};

// A segment with a wider time range is only searched in vain: here it is made narrower.
const ONLY: Readonly<Record<string, (value: number) => number>> = {
  'segments.ts_from': (value) => value + 3_600_000,
  'segments.ts_to': (value) => value - 3_600_000,
};

const KEYS = new Set(['run_id', 'request_id', 'interaction_id', 'protocol', 'seq_from', 'key', 'attempt_number']);

type Value = string | number | bigint | null | Uint8Array;

// Text in place of a count counts as none, like a zero.
function* otherValues(value: Value, by: Chance, others: readonly Value[]): Generator<Value> {
  for (const other of others) if (other !== value && !(other instanceof Uint8Array)) yield other;
  if (value === null) return yield '"x"';
  if (typeof value === 'number' || typeof value === 'bigint')
    return yield* [
      Number(value) + 1,
      Number(value) - 1,
      2n ** 62n,
      -(2n ** 62n),
      ...(Number(value) === 0 ? [] : ['x']),
    ];
  if (value instanceof Uint8Array)
    return yield* [
      DEEDS['bits flipped']?.(Buffer.from(value), by, Buffer.alloc(0)) ?? null,
      Buffer.from(value).toString('latin1'),
    ];
  if (value.length === 0) return yield 'x';
  const at = by.below(value.length);
  yield `${value.slice(0, at)}${value[at] === 'x' ? 'y' : 'x'}${value.slice(at + 1)}`;
}

describe.each(KINDS)(`in the rows of a run that %s (seed ${SEED})`, (kind) => {
  test.each(Object.keys(TABLES))('each changed value and each missing row is found: %s', async (table) => {
    const data = copyOf();
    const db = await openDatabase(join(data, 'parley.db'));
    db.exec('PRAGMA foreign_keys = OFF');
    const store = new SqliteStore(db, loadGroups(db));
    const missed: string[] = [];
    const attempt = async (what: string, done: string, sql: string, ...values: Value[]): Promise<void> => {
      db.exec('BEGIN');
      try {
        db.prepare(sql).run(...values);
        if ((await findBy(store, data, ids[kind])).length === 0) missed.push(what);
        figures.add(done);
      } catch (error) {
        // The database itself refuses it: there would be a second row with the same key.
        expect(String(error)).toMatch(/constraint/i);
      } finally {
        db.exec('ROLLBACK');
      }
    };
    const columns = (db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as { name: string }[]).map(
      ({ name }) => name,
    );
    const rows = db.prepare(`SELECT * FROM ${table} WHERE ${TABLES[table]}`).all(ids[kind]) as Record<string, Value>[];
    expect(rows.length).toBeGreaterThan(0);
    const keys = columns.filter((name) => KEYS.has(name));
    const where = keys.map((key) => `${key} = ?`).join(' AND ');
    for (const [number, row] of rows.entries()) {
      if (table === 'segments' && number % PIECES > 0) continue;
      const own = keys.map((key) => row[key] as Value);
      for (const [at, column] of columns.entries()) {
        if (UNPROVED_COLUMNS[`${table}.${column}`] !== undefined) continue;
        const value = row[column] as Value;
        const narrower = ONLY[`${table}.${column}`];
        for (const other of narrower
          ? [narrower(value as number)]
          : otherValues(
              value,
              chance(number, at),
              rows.slice(0, 2).map((each) => each[column] as Value),
            )) {
          await attempt(
            `${table}.${column} of row ${number}: ${String(value).slice(0, 60)} became ${String(other).slice(0, 60)}`,
            'values changed',
            `UPDATE ${table} SET ${column} = ? WHERE ${where}`,
            other,
            ...own,
          );
        }
      }
      if (table !== 'run_labels')
        await attempt(`row ${number} of ${table}`, 'rows deleted', `DELETE FROM ${table} WHERE ${where}`, ...own);
    }
    db.close();
    expect(missed).toEqual([]);
  });

  test('each member of the session is proved', async () => {
    const data = copyOf();
    const db = await openDatabase(join(data, 'parley.db'));
    const store = new SqliteStore(db, loadGroups(db));
    const run = await store.loadRun(ids[kind]);
    const handle = run && (await store.loadHandle(run.request_id));
    if (handle) {
      const missed: string[] = [];
      for (const [member, value] of Object.entries(handle)) {
        const changed = { ...handle, [member]: typeof value === 'number' ? value + 1 : `${value}x` };
        db.exec('BEGIN');
        db.prepare('UPDATE request_interactive_runtime SET session_handle_json = ? WHERE request_id = ?').run(
          JSON.stringify(changed),
          run.request_id,
        );
        if ((await findBy(store, data, ids[kind])).length === 0) missed.push(member);
        db.exec('ROLLBACK');
      }
      expect(missed).toEqual([]);
    }
    db.close();
  });

  test('a question that was never asked is found', async () => {
    const data = copyOf();
    const db = await openDatabase(join(data, 'parley.db'));
    db.prepare(
      `INSERT INTO interactions
       SELECT 'int_forged', run_id, attempt_number, question_json, state, asked_at, due_at, decides, resolution_json,
         engine
       FROM interactions
       WHERE run_id = ?`,
    ).run(ids[kind]);
    db.close();
    expect(await findIn(data, ids[kind])).toEqual(['rows']);
  });
});
