// The store in SQLite: what every store must do, and what its files, its lock and a full disk do.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { makeDurable, openDatabase } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { RunRecord } from '../../src/store/store.js';
import { copyDatabase } from '../support/old-databases.js';
import { T0, ask, change, describeStore, flush, newRun } from './conformance.js';

const DATA_DIR_MODULE = new URL('../../dist/store/sqlite/data-dir.js', import.meta.url).href;

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-store-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

const open = () => openDataDir(dir, { pid: process.pid });

async function execute(sql: string): Promise<void> {
  const db = await openDatabase(join(dir, 'parley.db'));
  db.exec(sql);
  db.close();
}

describeStore('SQLite', async () => {
  const { store, close } = await open();
  return { store, execute, merge: () => (store as SqliteStore).mergeAll(), cleanup: close };
});

describe('a data directory', () => {
  test('a new one has large pages, and one that is there keeps its own', async () => {
    await (await open()).close();
    // Where the file says it.
    expect(readFileSync(join(dir, 'parley.db')).readUInt16BE(16)).toBe(8 * 1024);
    rmSync(join(dir, 'parley.db'));
    const old = await openDatabase(join(dir, 'parley.db'));
    old.exec('PRAGMA page_size = 4096');
    migrate(old, MIGRATIONS);
    old.close();
    await (await open()).close();
    expect(readFileSync(join(dir, 'parley.db')).readUInt16BE(16)).toBe(4096);
  });

  test('many lines are packed, few are not', async () => {
    const { store, close } = await open();
    const outcome = await store.createRun(newRun(1));
    if (!outcome.created) throw new Error(outcome.reason);
    await store.append(change(outcome.run, { journal: flush(3, 5000, 3, T0 + 10) }));
    await close();
    const db = await openDatabase(join(dir, 'parley.db'));
    const rows = db.prepare('SELECT packed, length(body) AS bytes FROM segments ORDER BY seq_from, protocol').all() as {
      packed: number;
      bytes: number;
    }[];
    db.close();
    expect(rows.map(({ packed }) => packed > 0)).toEqual([false, false, true, true]);
    for (const { packed, bytes } of rows.slice(2)) expect(bytes).toBeLessThan(packed / 5);
  });

  test('committed data is there after closing and reopening', async () => {
    const first = await open();
    await first.store.createRun(newRun(1));
    const run = await first.store.loadRun('run_0001');
    await first.close();
    const second = await open();
    expect(await second.store.loadRun('run_0001')).toEqual(run);
    expect(run).not.toBeNull();
    await second.close();
  });

  test('its files belong to their owner alone', async () => {
    const opened = await open();
    await opened.store.createRun(newRun(1));
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o077, name).toBe(0);
    await opened.close();
  });

  test('a second writer sees who has the directory, and gets it when the first has exited', async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({
      code: 'DATA_DIR_IN_USE',
      message: expect.stringContaining(String(process.pid)) as string,
    });
    await first.close();
    await (await open()).close();
  });

  test('a second try in the process that has it does not give it to another process', async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ code: 'DATA_DIR_IN_USE' });
    const script = `
      import { openDataDir } from ${JSON.stringify(DATA_DIR_MODULE)};
      const opening = openDataDir(${JSON.stringify(dir)}, { pid: process.pid });
      console.log(await opening.then(() => 'opened', (error) => error.code));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(said.toString().trim()).toBe('DATA_DIR_IN_USE');
    await first.close();
  });

  test('a writer that was killed leaves no lock behind, and loses nothing that was committed', async () => {
    const script = `
      import { openDataDir } from ${JSON.stringify(DATA_DIR_MODULE)};
      const run = ${JSON.stringify({ ...newRun(1), journal: null })};
      const rasp = Buffer.from('{"seq":1}\\n');
      const { store } = await openDataDir(${JSON.stringify(dir)}, { pid: process.pid });
      const journal = { rasp: { firstSeq: 1, lastSeq: 1, bytes: rasp }, fcmp: null, firstTs: 1, lastTs: 1 };
      await store.createRun({ ...run, journal });
      // Nobody refers to the directory any more, and its lock is held all the same.
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
      globalThis.gc();
      console.log('committed');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await expect(open()).rejects.toMatchObject({
      code: 'DATA_DIR_IN_USE',
      message: expect.stringContaining(String(child.pid)) as string,
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const opened = await open();
    expect(await opened.store.loadRun('run_0001')).not.toBeNull();
    await opened.close();
  });

  test('a reader needs no lock and sees committed data', async () => {
    const opened = await open();
    await opened.store.createRun(newRun(1));
    const reader = await openDatabase(join(dir, 'parley.db'), { readOnly: true });
    expect(reader.prepare('SELECT count(*) AS n FROM runs').get()).toEqual({ n: 1 });
    expect(() => reader.exec('DELETE FROM runs')).toThrow();
    reader.close();
    await opened.close();
  });

  test.each(['wal', 'delete'])(
    'a database of a later version with the journal mode %s is refused and not touched',
    async (mode) => {
      await writeFuture(dir, mode);
      const filesOf = () =>
        readdirSync(dir)
          .filter((name) => name.startsWith('parley.db'))
          .map((name) => [name, readFileSync(join(dir, name)).toString('base64')]);
      const before = filesOf();
      await expect(open()).rejects.toMatchObject({ code: 'DATABASE_TOO_NEW' });
      expect(filesOf()).toEqual(before);
      expect(before.map(([name]) => name)).toEqual(['parley.db']);
    },
  );

  test('one that could not be opened leaves no file open, whatever the reason', async () => {
    const [tooNew, damaged] = [join(dir, 'new'), join(dir, 'damaged')];
    mkdirSync(tooNew);
    mkdirSync(damaged);
    await writeFuture(tooNew, 'wal');
    writeFileSync(join(damaged, 'parley.db'), 'this is no database'.repeat(1000));
    const used = await open();
    const fail = async () => {
      for (const path of [tooNew, damaged, dir]) await expect(openDataDir(path, { pid: 1 })).rejects.toThrow();
    };
    // SQLite keeps one file for the next try in the directory that is in use: closing it would drop the lock.
    await fail();
    const before = openFiles();
    await fail();
    expect(openFiles()).toEqual(before);
    expect(before.filter((path) => path.startsWith(tooNew) || path.startsWith(damaged))).toEqual([]);
    await used.close();
  });

  test('a path that cannot be a data directory is refused with the reason', async () => {
    const file = join(dir, 'file');
    writeFileSync(file, '');
    await expect(openDataDir(file, { pid: 1 })).rejects.toMatchObject({
      code: 'DATA_DIR_UNUSABLE',
      message: expect.stringContaining(file) as string,
    });
    const damaged = join(dir, 'damaged');
    await (await openDataDir(damaged, { pid: 1 })).close();
    for (const name of readdirSync(damaged).filter((each) => each.startsWith('parley.db')))
      writeFileSync(join(damaged, name), 'this is no database'.repeat(1000));
    await expect(openDataDir(damaged, { pid: 1 })).rejects.toMatchObject({ code: 'DATA_DIR_UNUSABLE' });
  });
});

// A database of a Parley that is not written yet.
async function writeFuture(path: string, mode: string): Promise<void> {
  const db = await openDatabase(join(path, 'parley.db'));
  db.exec(`PRAGMA journal_mode = ${mode}`);
  db.exec('CREATE TABLE future (x)');
  db.exec('PRAGMA user_version = 9999');
  db.close();
}

// The files of the test that this process has open, where the system tells.
function openFiles(): string[] {
  const fds = existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd', { encoding: 'utf8' }) : [];
  return fds
    .flatMap((fd) => linkOf(`/proc/self/fd/${fd}`))
    .filter((path) => path.startsWith(dir))
    .toSorted();
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    // The one that listed the others is closed by now.
    return [];
  }
}

describe('a durable database', () => {
  test('has every commit on the disk before it is answered, whatever was the case before', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    db.exec('PRAGMA synchronous = OFF');
    db.exec('PRAGMA foreign_keys = OFF');
    makeDurable(db);
    const read = (name: string) => (db.prepare(`PRAGMA ${name}`).get() as Record<string, unknown>)[name];
    expect([read('synchronous'), read('journal_mode'), read('foreign_keys')]).toEqual([2, 'wal', 1]);
    db.close();
  });

  test('is part of a data directory', async () => {
    const opened = await open();
    await opened.store.createRun(newRun(1));
    expect(existsSync(join(dir, 'parley.db-wal'))).toBe(true);
    await opened.close();
  });

  test('that is full reports the SQLite error, has no partial writes, and works again when there is room', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    makeDurable(db);
    migrate(db);
    const store = new SqliteStore(db, loadGroups(db));
    await store.createRun(newRun(1));
    const run = (await store.loadRun('run_0001')) as RunRecord;
    const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number };
    db.exec(`PRAGMA max_page_count = ${pages + 1}`);
    const large = { set: { status: 'waiting_user' }, ask: ask('int_1'), journal: flush(3, 2000, 3, T0 + 10) } as const;
    for (let again = 0; again < 3; again += 1)
      await expect(store.append(change(run, large))).rejects.toThrow('database or disk is full');
    await expect(store.createRun(newRun(2, { journal: flush(1, 2000, 1) }))).rejects.toThrow(
      'database or disk is full',
    );
    expect([
      await store.loadRun('run_0001'),
      await store.loadInteraction('int_1'),
      await store.loadRun('run_0002'),
    ]).toEqual([run, null, null]);
    expect(await store.readJournal('run_0001', 'rasp', { limit: 10_000 })).toHaveLength(2);
    db.exec('PRAGMA max_page_count = 1000000');
    expect(await store.append(change(run, large))).toMatchObject({ committed: true });
    expect(await store.readJournal('run_0001', 'rasp', { limit: 10_000 })).toHaveLength(2002);
    await store.close();
  });
});

describe('the interactive runtime table', () => {
  const OLD = `CREATE TABLE request_interactive_runtime (
    request_id TEXT PRIMARY KEY, profile_json TEXT, effective_session_timeout_sec INTEGER, session_handle_json TEXT,
    wait_deadline_at TEXT, process_binding_json TEXT, updated_at TEXT)`;

  test('nothing of a resident process is in the database', async () => {
    const opened = await open();
    await opened.close();
    const db = await openDatabase(join(dir, 'parley.db'));
    const schema = (db.prepare('SELECT sql FROM sqlite_master').all() as { sql: string | null }[])
      .map(({ sql }) => sql ?? '')
      .join('\n');
    db.close();
    expect(schema).toContain('CREATE TABLE interactions');
    expect(schema).not.toMatch(/sticky|deadline|process_binding|watchdog|profile_json|\bpid\b/i);
  });

  test('it has exactly the four columns', async () => {
    const opened = await open();
    await opened.close();
    const db = await openDatabase(join(dir, 'parley.db'));
    expect(
      (db.prepare("SELECT name FROM pragma_table_info('request_interactive_runtime')").all() as { name: string }[]).map(
        ({ name }) => name,
      ),
    ).toEqual(['request_id', 'effective_session_timeout_sec', 'session_handle_json', 'updated_at']);
    db.close();
  });

  test('an old table is migrated once, with timeout and handle kept, and doing it again changes nothing', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    db.exec(OLD);
    db.exec(`INSERT INTO request_interactive_runtime VALUES
      ('r1', '{"kind":"resumable"}', 900, '{"handle_value":"abc"}', '2026-01-01T00:00:00Z', '{"pid":1}',
        '2026-01-02T00:00:00Z'),
      ('r2', '{"kind":"sticky_process"}', NULL, NULL, NULL, NULL, NULL)`);
    migrate(db);
    const rows = () => db.prepare('SELECT * FROM request_interactive_runtime ORDER BY request_id').all();
    const once = rows();
    expect(once).toMatchObject([
      {
        request_id: 'r1',
        effective_session_timeout_sec: 900,
        session_handle_json: '{"handle_value":"abc"}',
        updated_at: '2026-01-02T00:00:00Z',
      },
      { request_id: 'r2', effective_session_timeout_sec: 1200, session_handle_json: null },
    ]);
    expect(Object.keys(once[0] as object)).toHaveLength(4);
    migrate(db);
    db.exec('PRAGMA user_version = 0');
    migrate(db, MIGRATIONS.slice(0, 1));
    expect(rows()).toEqual(once);
    db.close();
  });

  test('invalid timeouts of an old table become the default; of two rows per request the newest is kept', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    // Without a key, as a predecessor that lost it: several rows of one request.
    db.exec(OLD.replace(' PRIMARY KEY', ''));
    const timeouts = [`'abc'`, '1.5', `'1800'`, '-1', '0', `''`, `x'00'`, '1e300', '600.0', 'NULL', '900'];
    for (const [index, value] of timeouts.entries())
      db.exec(
        `INSERT INTO request_interactive_runtime
         VALUES ('r${String(index).padStart(2, '0')}', NULL, ${value}, NULL, NULL, NULL, '2026-01-01T00:00:00Z')`,
      );
    db.exec(`INSERT INTO request_interactive_runtime VALUES
      ('twice', NULL, 100, '{"handle_value":"new"}', NULL, NULL, '2026-01-03T00:00:00Z'),
      ('twice', NULL, 200, '{"handle_value":"old"}', NULL, NULL, '2026-01-02T00:00:00Z'),
      ('twice', NULL, 300, '{"handle_value":"undated"}', NULL, NULL, NULL)`);
    migrate(db);
    const rows = db.prepare('SELECT * FROM request_interactive_runtime ORDER BY request_id').all() as {
      effective_session_timeout_sec: number;
      session_handle_json: string;
    }[];
    expect(rows.map((row) => row.effective_session_timeout_sec)).toEqual([
      1200, 1200, 1800, 1200, 1200, 1200, 1200, 1200, 600, 1200, 900, 100,
    ]);
    expect(rows.at(-1)).toMatchObject({
      request_id: 'twice',
      session_handle_json: '{"handle_value":"new"}',
      updated_at: '2026-01-03T00:00:00Z',
    });
    db.close();
    await (await open()).close();
  });

  test('an invalid timeout that the version before has carried along becomes the default', async () => {
    await copyDatabase(1, join(dir, 'parley.db'));
    const old = await openDatabase(join(dir, 'parley.db'));
    migrate(
      old,
      MIGRATIONS.filter(({ version }) => version <= 5),
    );
    old.exec(`UPDATE request_interactive_runtime SET effective_session_timeout_sec = 'abc' WHERE request_id = 'req_1'`);
    old.exec(`UPDATE request_interactive_runtime SET effective_session_timeout_sec = 1.5 WHERE request_id = 'req_2'`);
    migrate(old);
    expect(old.prepare('SELECT effective_session_timeout_sec AS sec FROM request_interactive_runtime').all()).toEqual([
      { sec: 1200 },
      { sec: 1200 },
    ]);
    old.close();
  });

  // Valid JSON, but no counts by name.
  test.each(['5', 'true', '[1]', '"x"', 'null', '{'])('a turn with the warnings %s is upgraded', async (warnings) => {
    await copyDatabase(11, join(dir, 'parley.db'));
    const old = await openDatabase(join(dir, 'parley.db'));
    old.prepare('UPDATE turns SET warnings_json = ?').run(warnings);
    old.close();
    const { store, close } = await open();
    expect(await store.findWrongTotals()).toEqual([]);
    await store.recountTotals();
    expect(await store.findWrongTotals()).toEqual([]);
    await close();
  });

  test('a deadline with a fraction of a millisecond is rounded; values that are no time are left', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    migrate(
      db,
      MIGRATIONS.filter(({ version }) => version <= 9),
    );
    db.exec('PRAGMA foreign_keys = OFF');
    const insert = db.prepare(`INSERT INTO interactions
      (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at, decides)
      VALUES (?, 'run_1', 1, '{}', 'answered', 1, ?, 0)`);
    const deadlines = { a: 1795032804374, b: 1795032804375.5, c: 1795032804375.49, d: 1e300, e: -1.5, f: 'soon' };
    for (const [id, due] of Object.entries(deadlines)) insert.run(id, due);
    migrate(db);
    const rows = db.prepare('SELECT interaction_id AS id, due_at FROM interactions').all() as {
      id: string;
      due_at: unknown;
    }[];
    expect(Object.fromEntries(rows.map(({ id, due_at: due }) => [id, due]))).toEqual({
      ...deadlines,
      b: 1795032804376,
      c: 1795032804375,
    });
    db.close();
  });

  test('a new run may have the request id of a migrated row, and takes its place', async () => {
    await copyDatabase(0, join(dir, 'parley.db'));
    const { store, close } = await open();
    expect(await store.loadHandle('req_1')).toMatchObject({ handle_value: 'h-1' });
    expect(await store.createRun(newRun(1, { request_id: 'req_1', session_timeout_sec: 60 }))).toMatchObject({
      created: true,
    });
    expect(await store.loadHandle('req_1')).toBeNull();
    expect(await store.createRun(newRun(2, { request_id: 'req_1', session_timeout_sec: 60 }))).toMatchObject({
      created: false,
      reason: 'known',
    });
    await close();
    const db = await openDatabase(join(dir, 'parley.db'));
    expect(
      db
        .prepare(
          `SELECT effective_session_timeout_sec AS sec FROM request_interactive_runtime WHERE request_id = 'req_1'`,
        )
        .all(),
    ).toEqual([{ sec: 60 }]);
    db.close();
  });

  test('how long runs have waited is counted for those that were there before', async () => {
    await copyDatabase(3, join(dir, 'parley.db'));
    const db = await openDatabase(join(dir, 'parley.db'));
    db.exec('DELETE FROM interactions; DELETE FROM runs');
    db.exec(
      `INSERT INTO runs VALUES
         ('run_1', 'req_1', 'd', 'codex', '{}', 'succeeded', 3, 0, NULL, NULL, NULL, 1, 1, 1, 0, 0, 0, 'x'),
         ('run_2', 'req_2', 'd', 'codex', '{}', 'queued', 1, 0, NULL, NULL, NULL, 1, 1, 1, 0, 0, 0, 'x')`,
    );
    db.exec(
      `INSERT INTO interactions VALUES
         ('i1', 'run_1', 1, '{}', 'answered', 1000, 2000, 0, '{"at":1500}'),
         ('i2', 'run_1', 2, '{}', 'answered', 2000, 3000, 0, '{"at":2250}'),
         ('i3', 'run_1', 3, '{}', 'pending', 3000, 4000, 0, NULL)`,
    );
    migrate(db);
    expect(db.prepare('SELECT run_id, waited_ms FROM runs ORDER BY run_id').all()).toEqual([
      { run_id: 'run_1', waited_ms: 750 },
      { run_id: 'run_2', waited_ms: 0 },
    ]);
    db.close();
  });

  test('a migration that fails half way leaves the database as it was', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    const broken = {
      version: 1,
      name: 'broken',
      up: (each: typeof db) => {
        each.exec('CREATE TABLE half (x)');
        throw new Error('half way');
      },
    };
    expect(() => migrate(db, [broken])).toThrow('half way');
    expect(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()).toEqual([]);
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 0 });
    db.close();
  });
});
