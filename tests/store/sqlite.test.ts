import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { describeStore, newRun } from './conformance.js';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-store-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

const open = () => openDataDir(dir, { pid: process.pid });

describeStore('SQLite', async () => {
  const { store, close } = await open();
  return { store, cleanup: close };
});

describe('a data directory', () => {
  test('what was committed is there after it was closed and opened again', async () => {
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

  test('a second writer is told who has it, and gets it when the first is gone', async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ code: 'DATA_DIR_IN_USE', message: expect.stringContaining(String(process.pid)) as string });
    await first.close();
    await (await open()).close();
  });

  test('a writer that was killed leaves no lock behind, and loses nothing that was committed', async () => {
    const script = `
      import { openDataDir } from ${JSON.stringify(new URL('../../dist/store/sqlite/data-dir.js', import.meta.url).href)};
      const run = ${JSON.stringify({ ...newRun(1), journal: null })};
      const rasp = Buffer.from('{"seq":1}\\n');
      const { store } = await openDataDir(${JSON.stringify(dir)}, { pid: process.pid });
      await store.createRun({ ...run, journal: { rasp: { firstSeq: 1, lastSeq: 1, bytes: rasp }, fcmp: null, firstTs: 1, lastTs: 1 } });
      console.log('committed');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await expect(open()).rejects.toMatchObject({ code: 'DATA_DIR_IN_USE', message: expect.stringContaining(String(child.pid)) as string });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const opened = await open();
    expect(await opened.store.loadRun('run_0001')).not.toBeNull();
    await opened.close();
  });

  test('a reader needs no lock and sees what is committed', async () => {
    const opened = await open();
    await opened.store.createRun(newRun(1));
    const reader = await openDatabase(join(dir, 'parley.db'), { readOnly: true });
    expect(reader.prepare('SELECT count(*) AS n FROM runs').get()).toEqual({ n: 1 });
    expect(() => reader.exec('DELETE FROM runs')).toThrow();
    reader.close();
    await opened.close();
  });

  test('a database of a later version is refused and not touched', async () => {
    await (await open()).close();
    const db = await openDatabase(join(dir, 'parley.db'));
    db.exec('PRAGMA user_version = 9999');
    db.close();
    await expect(open()).rejects.toMatchObject({ code: 'DATABASE_TOO_NEW' });
  });

  test('a path that cannot be a data directory is refused with the reason', async () => {
    const file = join(dir, 'file');
    writeFileSync(file, '');
    await expect(openDataDir(file, { pid: 1 })).rejects.toMatchObject({ code: 'DATA_DIR_UNUSABLE', message: expect.stringContaining(file) as string });
    const damaged = join(dir, 'damaged');
    await (await openDataDir(damaged, { pid: 1 })).close();
    for (const name of readdirSync(damaged).filter((each) => each.startsWith('parley.db'))) writeFileSync(join(damaged, name), 'this is no database'.repeat(1000));
    await expect(openDataDir(damaged, { pid: 1 })).rejects.toMatchObject({ code: 'DATA_DIR_UNUSABLE' });
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
    const schema = (db.prepare('SELECT sql FROM sqlite_master').all() as { sql: string | null }[]).map(({ sql }) => sql ?? '').join('\n');
    db.close();
    expect(schema).toContain('CREATE TABLE interactions');
    expect(schema).not.toMatch(/sticky|deadline|process_binding|watchdog|profile_json|\bpid\b/i);
  });

  test('it has exactly the four columns', async () => {
    const opened = await open();
    await opened.close();
    const db = await openDatabase(join(dir, 'parley.db'));
    expect((db.prepare("SELECT name FROM pragma_table_info('request_interactive_runtime')").all() as { name: string }[]).map(({ name }) => name)).toEqual(['request_id', 'effective_session_timeout_sec', 'session_handle_json', 'updated_at']);
    db.close();
  });

  test('an old table is migrated once, with timeout and handle kept, and doing it again changes nothing', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    db.exec(OLD);
    db.exec(`INSERT INTO request_interactive_runtime VALUES
      ('r1', '{"kind":"resumable"}', 900, '{"handle_value":"abc"}', '2026-01-01T00:00:00Z', '{"pid":1}', '2026-01-02T00:00:00Z'),
      ('r2', '{"kind":"sticky_process"}', NULL, NULL, NULL, NULL, NULL)`);
    migrate(db);
    const rows = () => db.prepare('SELECT * FROM request_interactive_runtime ORDER BY request_id').all();
    const once = rows();
    expect(once).toMatchObject([
      { request_id: 'r1', effective_session_timeout_sec: 900, session_handle_json: '{"handle_value":"abc"}', updated_at: '2026-01-02T00:00:00Z' },
      { request_id: 'r2', effective_session_timeout_sec: 1200, session_handle_json: null },
    ]);
    expect(Object.keys(once[0] as object)).toHaveLength(4);
    migrate(db);
    db.exec('PRAGMA user_version = 0');
    migrate(db, MIGRATIONS.slice(0, 1));
    expect(rows()).toEqual(once);
    db.close();
  });

  test('a migration that fails half way leaves the database as it was', async () => {
    const db = await openDatabase(join(dir, 'parley.db'));
    const broken = { version: 1, name: 'broken', up: (each: typeof db) => {
      each.exec('CREATE TABLE half (x)');
      throw new Error('half way');
    } };
    expect(() => migrate(db, [broken])).toThrow('half way');
    expect(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()).toEqual([]);
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 0 });
    db.close();
  });
});
