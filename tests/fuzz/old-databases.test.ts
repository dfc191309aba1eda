// A data directory with an old and damaged database: it is migrated completely, or refused in one sentence and left
// unchanged.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RequestError } from '../../src/run/request-error.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { NEWEST_VERSION } from '../../src/store/sqlite/migrate.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { fuzz, PATIENCE_MS, pick, type Random } from '../support/fuzz.js';
import { copyDatabase, dump, look, VERSIONS } from '../support/old-databases.js';

let root: string;
let fresh: Record<string, string> | null;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'parley-fuzz-old-'));
  for (const version of VERSIONS) {
    for (const mode of ['wal', 'delete'] as const)
      await copyDatabase(version, join(root, `v${version}-${mode}.db`), mode);
  }
  await (await openDataDir(join(root, 'fresh'), { pid: 1 })).close();
  fresh = await columnsOf(join(root, 'fresh', 'parley.db'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// The columns of each table with type and constraint, and the indexes.
async function columnsOf(file: string): Promise<Record<string, string> | null> {
  return look(file, (db) =>
    Object.fromEntries(
      (
        db
          .prepare(
            `SELECT t.name AS item, group_concat(c.name || ' ' || c.type || c."notnull" || c.pk) AS columns
             FROM sqlite_master t
             LEFT JOIN pragma_table_info(CASE WHEN t.type = 'table' THEN t.name END) c
             WHERE t.name NOT LIKE 'sqlite_%'
             GROUP BY t.name`,
          )
          .all() as { item: string; columns: string }[]
      ).map(({ item, columns }) => [item, columns]),
    ),
  );
}

// The index file that SQLite keeps next to a log does not count.
const filesIn = (dir: string) =>
  Object.fromEntries(
    readdirSync(dir)
      .filter((name) => name.startsWith('parley.db') && !name.endsWith('-shm'))
      .map((name) => [
        name,
        statSync(join(dir, name)).isFile()
          ? createHash('sha256')
              .update(readFileSync(join(dir, name)))
              .digest('hex')
          : 'folder',
      ]),
  );

// Either way once more, which must make no difference.
async function expectWholeOrRefused(dir: string): Promise<'opened' | 'refused'> {
  const file = join(dir, 'parley.db');
  const before = filesIn(dir);
  const version = statSync(file).isFile()
    ? await look(file, (db) => (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version)
    : null;
  const readable = statSync(file).isFile() ? await dump(file) : null;
  const outcome = await open(dir);
  if (outcome === 'refused') {
    expect(filesIn(dir)).toEqual(before);
  } else {
    expect(await columnsOf(file)).toMatchObject(fresh ?? {});
    const whole = await dump(file);
    // A database of the current version is not read completely at each open.
    if (version !== NEWEST_VERSION)
      expect(
        await look(file, (db) => db.prepare('PRAGMA integrity_check').all()),
        'the migrated database is sound',
      ).toEqual([{ integrity_check: 'ok' }]);
    if (whole !== null) expect((JSON.parse(whole) as unknown[])[0]).toEqual({ user_version: NEWEST_VERSION });
    if (readable !== null) expectRowsKept(readable, whole ?? '');
  }
  const once = outcome === 'opened' ? await dump(file) : filesIn(dir);
  expect(await open(dir)).toBe(outcome);
  expect(outcome === 'opened' ? await dump(file) : filesIn(dir)).toEqual(once);
  return outcome;
}

async function open(dir: string): Promise<'opened' | 'refused'> {
  try {
    const data = await openDataDir(dir, { pid: 1 });
    await data.close();
    return 'opened';
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    const { code, message } = error as RequestError;
    expect(['DATA_DIR_UNUSABLE', 'DATABASE_TOO_NEW']).toContain(code);
    expect(message.split('\n')).toHaveLength(1);
    expect(message).not.toMatch(/\n {4}at |node_modules|\.js:\d/);
    return 'refused';
  }
}

const tables = (text: string) =>
  new Map((JSON.parse(text) as [unknown, unknown, [string, Record<string, unknown>[]][]])[2]);

// As many rows in each table as before, and the values that both versions have.
function expectRowsKept(before: string, after: string): void {
  const now = tables(after);
  for (const [name, rows] of tables(before)) {
    // The totals have their counts since version 12.
    if (name === 'deleted_turns' && now.has('totals')) continue;
    const kept = now.get(name);
    expect(kept, name).toHaveLength(rows.length);
    for (const [index, row] of rows.entries()) {
      const common = Object.entries(row).filter(
        ([column, value]) => value !== null && Object.hasOwn(kept?.[index] ?? {}, column),
      );
      expect(kept?.[index], name).toMatchObject(Object.fromEntries(common));
    }
  }
}

function copyOf(
  random: Random,
  index: number,
): { readonly dir: string; readonly file: string; readonly version: number } {
  const dir = join(root, `case-${index}-${random(1e9)}`);
  mkdirSync(dir);
  const version = pick(random, VERSIONS);
  copyFileSync(join(root, `v${version}-${pick(random, ['wal', 'delete'])}.db`), join(dir, 'parley.db'));
  return { dir, file: join(dir, 'parley.db'), version };
}

describe.each(VERSIONS)('version %d', (version) => {
  test.each(['wal', 'delete'])(
    'whole, with the journal mode %s, is brought up to date with all its rows',
    async (mode) => {
      const dir = join(root, `whole-${version}-${mode}`);
      mkdirSync(dir);
      copyFileSync(join(root, `v${version}-${mode}.db`), join(dir, 'parley.db'));
      expect(await expectWholeOrRefused(dir)).toBe('opened');
      const rows = <T>(sql: string) => look(join(dir, 'parley.db'), (db) => db.prepare(sql).all() as T[]);
      expect(await rows('SELECT * FROM request_interactive_runtime')).toHaveLength(version < 2 ? 2 : 6);
      const waits = await rows<{ waited_ms: number; request_id: string }>(
        'SELECT request_id, waited_ms FROM runs ORDER BY request_id',
      );
      expect(waits?.filter(({ waited_ms: waited }) => waited > 0).map(({ request_id: id }) => id)).toEqual(
        version < 2 ? [] : ['req_2', 'req_4', 'req_6'],
      );
    },
  );

  test('is read by the store of today: runs, questions and the journal of each', async () => {
    const dir = join(root, `read-${version}`);
    mkdirSync(dir);
    await copyDatabase(version, join(dir, 'parley.db'));
    const { store, close } = await openDataDir(dir, { pid: 1 });
    const runs = (await store.listRuns({ limit: 100 })).toSorted((one, other) =>
      one.request_id < other.request_id ? -1 : 1,
    );
    expect(runs.map(({ status }) => status)).toEqual(
      version < 2 ? [] : ['succeeded', 'succeeded', 'failed', 'canceled', 'waiting_user', 'waiting_user'],
    );
    for (const { run_id: id, status, heads } of runs) {
      expect((await store.loadPendingInteraction(id))?.state).toBe(status === 'waiting_user' ? 'pending' : undefined);
      const seqs = (await store.readJournal(id, 'rasp', { limit: 10_000 })).map(
        (line) => (JSON.parse(line) as { seq: number }).seq,
      );
      expect(seqs).toEqual(Array.from({ length: heads.rasp_seq }, (_, index) => index + 1));
      expect(await store.recomputeDigest(id)).toBe(heads.digest);
    }
    await close();
  });
});

const BYTES: readonly ((bytes: Buffer, random: Random) => Buffer)[] = [
  (bytes, random) => bytes.subarray(0, random(bytes.length)),
  (bytes, random) => bytes.subarray(0, 4096 * random(bytes.length / 4096)),
  (bytes, random) => bytes.subarray(0, random(120)),
  (bytes, random) => Buffer.concat([bytes, Buffer.alloc(random(10_000), random(256))]),
  (bytes, random) =>
    Buffer.from(bytes).fill(random(256), 4096 * random(bytes.length / 4096), 4096 * (1 + random(bytes.length / 4096))),
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    copy.copy(
      copy,
      4096 * random(copy.length / 4096),
      4096 * random(copy.length / 4096),
      4096 * random(copy.length / 4096) + 4096,
    );
    return copy;
  },
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    copy[random(100)] = random(256);
    return copy;
  },
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    for (let n = random(200); n >= 0; n -= 1) copy[random(copy.length)] = random(256);
    return copy;
  },
];

test(
  'missing, doubled or overwritten bytes and pages',
  async () => {
    await fuzz('old database bytes', 40, async (random, index) => {
      const { dir, file } = copyOf(random, index);
      writeFileSync(file, pick(random, BYTES)(readFileSync(file), random));
      await expectWholeOrRefused(dir);
      rmSync(dir, { recursive: true });
    });
  },
  PATIENCE_MS,
);

const TABLES = ['runs', 'interactions', 'segments', 'turns', 'run_labels', 'deliveries', 'request_interactive_runtime'];
const TABLE_CHANGES = [
  'runs DROP COLUMN result_json',
  'runs DROP COLUMN digest',
  'interactions DROP COLUMN question_json',
  'interactions DROP COLUMN decides',
  'segments DROP COLUMN body',
  'runs RENAME COLUMN status TO state',
  'request_interactive_runtime DROP COLUMN updated_at',
  'request_interactive_runtime RENAME COLUMN request_id TO id',
  'segments RENAME TO pieces',
  'turns ADD COLUMN more TEXT',
];
const INTERACTION_VALUES = [
  "resolution_json = 'no JSON'",
  "resolution_json = '{}'",
  "resolution_json = '[1]'",
  'resolution_json = \'{"at":"yesterday"}\'',
  'resolution_json = \'{"at":1e300}\'',
  "resolution_json = x'00ff'",
  "asked_at = 'text'",
  'asked_at = 9.0e14',
  "run_id = 'run_none'",
  "question_json = x'ff'",
];
const RUN_VALUES = [
  "spec_json = 'no JSON'",
  "spec_json = x'00'",
  "status = 'sleeping'",
  'status = 7',
  "rasp_seq = 'many'",
  'attempt_number = -1',
  "created_at = 'then'",
  'digest = 5',
  "error_json = '{'",
];
const RUNTIME_VALUES = [
  "effective_session_timeout_sec = 'long'",
  "session_handle_json = 'no JSON'",
  'session_handle_json = 12',
  "updated_at = x'01'",
  "request_id = x'02'",
  'request_id = NULL',
];

const STRUCTURE: readonly ((random: Random) => string)[] = [
  (random) => `DROP TABLE ${pick(random, TABLES)}`,
  (random) => `ALTER TABLE ${pick(random, TABLE_CHANGES)}`,
  (random) =>
    `DROP INDEX ${pick(random, ['one_pending_per_run', 'segments_by_seq', 'runs_by_status', 'deliveries_due'])}`,
  (random) => `UPDATE interactions SET ${pick(random, INTERACTION_VALUES)}`,
  (random) => `UPDATE runs SET ${pick(random, RUN_VALUES)}`,
  (random) => `UPDATE request_interactive_runtime SET ${pick(random, RUNTIME_VALUES)}`,
  (random) => `PRAGMA user_version = ${pick(random, [-5, -1, 0, 1, 2, 3, 4, 5, 9999, 2147483647])}`,
  () => 'CREATE TABLE request_interactive_runtime_old (x)',
  () => 'CREATE TABLE of_another_program (x); INSERT INTO of_another_program VALUES (1)',
  () => 'CREATE VIEW v AS SELECT * FROM nothing_there',
  () => 'CREATE TRIGGER t AFTER INSERT ON request_interactive_runtime BEGIN SELECT nothing(); END',
  () => 'DROP TABLE request_interactive_runtime; CREATE VIEW request_interactive_runtime AS SELECT 1 AS request_id',
  () => 'DROP TABLE runs; CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT)',
];

test(
  'unexpected tables, columns, rows and versions',
  async () => {
    await fuzz('old database structure', 50, async (random, index) => {
      const { dir, file } = copyOf(random, index);
      const db = await openDatabase(file);
      for (let n = 1 + random(2); n > 0; n -= 1) {
        try {
          db.exec(pick(random, STRUCTURE)(random));
        } catch {
          // This version has no such table.
        }
      }
      db.close();
      await expectWholeOrRefused(dir);
      rmSync(dir, { recursive: true });
    });
  },
  PATIENCE_MS,
);

async function inFolder(prepare: (dir: string, file: string) => void | Promise<void>): Promise<'opened' | 'refused'> {
  const dir = mkdtempSync(join(root, 'one-'));
  await prepare(dir, join(dir, 'parley.db'));
  return expectWholeOrRefused(dir);
}

describe('a file in place of the database', () => {
  test('that is empty becomes one', async () => {
    expect(await inFolder((_dir, file) => writeFileSync(file, ''))).toBe('opened');
  });

  test.each([
    ['a folder', (_dir: string, file: string) => mkdirSync(file)],
    ['text', (_dir: string, file: string) => writeFileSync(file, 'this is no database\n')],
    ['the beginning of a database', (_dir: string, file: string) => writeFileSync(file, 'SQLite format 3\0')],
  ])('%s is refused', async (_what, prepare) => {
    expect(await inFolder(prepare)).toBe('refused');
  });

  test.each([0, 1, 2, 3, 4, 5, -1])(
    'a database of another program with version %d is refused unchanged, in any journal mode',
    async (version) => {
      for (const mode of ['delete', 'wal']) {
        expect(
          await inFolder(async (_dir, file) => {
            const db = await openDatabase(file);
            db.exec(
              `PRAGMA journal_mode = ${mode}; CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ` +
                `('x'); PRAGMA user_version = ${version}`,
            );
            db.close();
          }),
        ).toBe('refused');
      }
    },
  );

  test.each([1, 2, 3])('a failing migration step rolls back the earlier ones: from version %d', async (version) => {
    expect(
      await inFolder(async (_dir, file) => {
        await copyDatabase(version, file, 'delete');
        const db = await openDatabase(file);
        // Blocks a later step.
        db.exec(
          version < 3
            ? 'CREATE TABLE deliveries (x)'
            : `UPDATE interactions SET resolution_json = 'no JSON' WHERE resolution_json IS NOT NULL`,
        );
        db.close();
      }),
    ).toBe('refused');
  });

  test('with the log of another database beside it is refused, or is what both together say', async () => {
    for (const version of VERSIONS) {
      await inFolder(async (dir, file) => {
        const other = join(dir, 'other.db');
        const db = await openDatabase(other);
        db.exec(`PRAGMA journal_mode = WAL; CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x')`);
        copyFileSync(`${other}-wal`, `${file}-wal`);
        db.close();
        copyFileSync(join(root, `v${version}-wal.db`), file);
      });
    }
  });
});
