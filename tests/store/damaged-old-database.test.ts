// An old database with damage in a part that no step of the migration reads: without the check, the migrated database
// would contain the damage undetected.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newRun } from './conformance.js';
import { expect, test } from 'vitest';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { createRoot } from '../support/orchestrated.js';

const SPEC = JSON.stringify(newRun(1).spec);

const OLD = [2, 3];

async function writeOld(file: string, version: number): Promise<void> {
  const db = await openDatabase(file);
  migrate(db, MIGRATIONS.slice(0, version));
  db.exec(
    `INSERT INTO runs
       (run_id, request_id, request_digest, engine, spec_json, status, attempt_number, epoch,
        created_at, updated_at, queued_at, rasp_seq, fcmp_seq, ts, digest)
     VALUES
       ('run_1', 'req_1', 'd', 'codex', '${SPEC}', 'succeeded', 1, 1, 1, 1, NULL, 4, 0, 1, 'x')`,
  );
  const insert = db.prepare(`INSERT INTO segments VALUES ('run_1', 'rasp', ?, ?, 1, 1, ?)`);
  // Each is longer than a page, so it continues on others.
  for (let seq = 1; seq <= 4; seq += 1) insert.run(seq, seq, Buffer.alloc(30_000, 'event'));
  db.close();
}

interface Place {
  readonly pageBytes: number;
  // The first page of a table or an index, counted from 1.
  rootOf(name: string): number;
}

async function placesIn(file: string): Promise<Place> {
  const db: Database = await openDatabase(file, { readOnly: true });
  const roots = new Map(
    (db.prepare('SELECT name, rootpage FROM sqlite_master').all() as { name: string; rootpage: number }[]).map(
      ({ name, rootpage }) => [name, rootpage],
    ),
  );
  const { page_size: pageBytes } = db.prepare('PRAGMA page_size').get() as { page_size: number };
  db.close();
  return { pageBytes, rootOf: (name) => roots.get(name) ?? 0 };
}

const DAMAGES: Readonly<Record<string, (bytes: Buffer, place: Place) => void>> = {
  'an index that is zeros': (bytes, { pageBytes, rootOf }) =>
    void bytes.fill(0, (rootOf('segments_by_seq') - 1) * pageBytes, rootOf('segments_by_seq') * pageBytes),
  'a table that has lost its rows, which its index still has': (bytes, { pageBytes, rootOf }) =>
    void bytes.writeUInt16BE(0, (rootOf('segments') - 1) * pageBytes + 3),
  // Found by PARLEY_SEED=20261117, case 1 of the bytes of old databases.
  'a declaration that is not what it was': (bytes) =>
    void bytes.writeUInt8(0xff, bytes.indexOf('attempt_number INTEGER NOT NULL') + 'attempt_number INTEGER N'.length),
  'an event whose second page is another': (bytes, { pageBytes }) => {
    const last = bytes.length - pageBytes;
    bytes.writeUInt32BE(1, last - pageBytes);
  },
};

test.each(OLD.flatMap((version) => Object.keys(DAMAGES).map((damage) => [version, damage] as const)))(
  'of version %d with %s is refused and left as it is',
  async (version, damage) => {
    const dir = join(createRoot(), 'data');
    mkdirSync(dir, { mode: 0o700 });
    const file = join(dir, 'parley.db');
    await writeOld(file, version);
    const bytes = readFileSync(file);
    DAMAGES[damage]?.(bytes, await placesIn(file));
    writeFileSync(file, bytes);
    await expect(openDataDir(dir, { pid: 1 })).rejects.toMatchObject({
      code: 'DATA_DIR_UNUSABLE',
      message: expect.stringMatching(/is damaged and was not changed: |malformed/),
    });
    expect(readFileSync(file).equals(bytes)).toBe(true);
  },
);

test.each(OLD)('of version %d without damage is brought up to date', async (version) => {
  const dir = join(createRoot(), 'data');
  mkdirSync(dir, { mode: 0o700 });
  await writeOld(join(dir, 'parley.db'), version);
  const { store, close } = await openDataDir(dir, { pid: 1 });
  expect(await store.listRuns({ limit: 10 })).toMatchObject([{ run_id: 'run_1', waited_ms: 0 }]);
  await close();
});
