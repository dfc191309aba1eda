// Makes the database of a data directory as small as possible, while no other process writes to it: merges recent
// flushes, packs the journals, rewrites the file without free pages and empties the write-ahead log. The file can
// return free pages by itself afterwards. Each step is a transaction: after a crash the next call continues.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDiskFull } from '../../../files/disk-full.js';
import { damageIn } from '../../../kernel/stored-json.js';
import { refusal } from '../../../run/request-error.js';
import { checkSound } from '../check-tables.js';
import { lockDataDir, openMigrated, withDataDirErrors, type Writer } from '../data-dir.js';
import { NEWEST_VERSION } from '../migrate.js';
import { returnFreePages, rollback, transact, type Database } from '../open-database.js';
import { GroupWriter } from '../recent/group-writer.js';
import { loadGroups } from '../recent/load-groups.js';
import { JournalPacker } from './pack-journals.js';

// About how much is rewritten in one transaction.
const PACKED_AT_ONCE = 8 * 1024 * 1024;
const PAGE = 1000;

export interface CompactOptions {
  // Throws if the file system of the data directory has less free space.
  readonly checkSpace: (bytes: number) => void;
  // How many runs of all are packed. After the last one, the file is rewritten, which takes the longest.
  readonly onPacked: (runs: number, total: number) => void;
}

export interface Compacted {
  // The size of the database with its write-ahead log.
  readonly before: number;
  readonly after: number;
  // Runs that were not packed, or not completely, because their journal is damaged.
  readonly damaged: readonly string[];
  // Another process still reads an old state, so the file has not become smaller yet.
  readonly isHeldUp: boolean;
}

// Null if there is no database.
export async function compactDataDir(path: string, writer: Writer, options: CompactOptions): Promise<Compacted | null> {
  const file = join(path, 'parley.db');
  if (!existsSync(file)) return null;
  const release = await lockDataDir(path, writer);
  try {
    return await withDataDirErrors(path, async () => {
      const before = sizeOf(file);
      const db = await openMigrated(file);
      let compacted: Pick<Compacted, 'damaged' | 'isHeldUp'>;
      try {
        // A damaged file is not rewritten: what could be salvaged of it might be lost.
        checkSound(db, NEWEST_VERSION);
        // SQLite writes the new file twice before it replaces the old one: into a temporary file and into the log.
        options.checkSpace(2 * usedBytes(db));
        compacted = compact(db, path, options);
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        throw refusal('STORE_UNAVAILABLE.compact_full', { path, reason: (error as Error).message });
      } finally {
        db.close();
      }
      return { before, after: sizeOf(file), ...compacted };
    });
  } finally {
    release();
  }
}

function usedBytes(db: Database): number {
  const { bytes } = db
    .prepare(
      `SELECT (page_count - freelist_count) * page_size AS bytes
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .get() as { bytes: number };
  return bytes;
}

function compact(db: Database, path: string, options: CompactOptions): Pick<Compacted, 'damaged' | 'isHeldUp'> {
  const damaged = [...new Set([...mergeRecent(db), ...packAll(db, options)])];
  returnFreePages(db);
  vacuum(db, path);
  const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
  return { damaged, isHeldUp: busy !== 0 };
}

// The temporary file has the whole database, so it is in the same folder, which only its owner can read.
function vacuum(db: Database, path: string): void {
  db.exec(`PRAGMA temp_store = FILE; PRAGMA temp_store_directory = '${path.replaceAll("'", "''")}'`);
  try {
    db.exec('VACUUM');
  } finally {
    // The folder applies to all databases of this process.
    db.exec(`PRAGMA temp_store_directory = ''`);
  }
}

// Returns the runs whose flushes could not be merged: segments of theirs are damaged.
function mergeRecent(db: Database): string[] {
  const damaged: string[] = [];
  const loaded = loadGroups(db);
  const groups = new GroupWriter(db, loaded);
  for (const { runId } of loaded.recent.runs()) {
    try {
      transact(db, () => {
        groups.merge(runId);
        groups.store();
      });
      groups.committed();
    } catch (error) {
      groups.rolledBack();
      if (!(error instanceof Error && /constraint/i.test(error.message))) throw error;
      damaged.push(runId);
    }
  }
  // The newest group keeps its number only.
  const clear = db.prepare(`UPDATE event_groups SET body = x'', packed = 0 WHERE group_id = ?`);
  transact(db, () => loadGroups(db).empty.forEach((group) => void clear.run(group)));
  return damaged;
}

// Returns the runs that have damaged segments.
function packAll(db: Database, { onPacked }: CompactOptions): string[] {
  const damaged: string[] = [];
  const packer = new JournalPacker(db);
  const { total } = db.prepare('SELECT COUNT(*) AS total FROM runs').get() as { total: number };
  let runs = 0;
  let bytes = 0;
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const runId of everyRunId(db)) {
      try {
        for (const packed of packer.pack(runId)) {
          bytes += packed;
          if (bytes < PACKED_AT_ONCE) continue;
          db.exec('COMMIT; BEGIN IMMEDIATE');
          bytes = 0;
        }
      } catch (error) {
        if (!damageIn(error)) throw error;
        damaged.push(runId);
      }
      onPacked((runs += 1), total);
    }
    db.exec('COMMIT');
  } catch (error) {
    rollback(db);
    throw error;
  }
  return damaged;
}

function* everyRunId(db: Database): Generator<string> {
  const select = db.prepare(`SELECT run_id FROM runs WHERE run_id > ? ORDER BY run_id LIMIT ${PAGE}`);
  for (let after = ''; ;) {
    const page = select.all(after) as { run_id: string }[];
    for (const { run_id: runId } of page) yield runId;
    const last = page.at(-1);
    if (!last) return;
    after = last.run_id;
  }
}

function sizeOf(file: string): number {
  return [file, `${file}-wal`].reduce(
    (bytes, path) => bytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}
