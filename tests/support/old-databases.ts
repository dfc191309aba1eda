// Databases as earlier versions left them, with runs, questions and journals of several pages in them; and one of the predecessor.
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';

const PREDECESSOR = `CREATE TABLE request_interactive_runtime (
  request_id TEXT PRIMARY KEY, profile_json TEXT, effective_session_timeout_sec INTEGER, session_handle_json TEXT,
  wait_deadline_at TEXT, process_binding_json TEXT, updated_at TEXT)`;

const journal = (protocol: string): { readonly body: Buffer; readonly last: number } => {
  const body = readFileSync(new URL(`../golden/codex/${readdirSync(new URL('../golden/codex/', import.meta.url))[0]}/${protocol}.jsonl`, import.meta.url));
  return { body, last: body.filter((byte) => byte === 0x0a).length };
};
const JOURNAL = { rasp: journal('rasp'), fcmp: journal('fcmp') };

export const VERSIONS = [0, ...MIGRATIONS.map(({ version }) => version)];

// Version 0 is the predecessor's.
export async function writeDatabase(file: string, version: number, { runs = 6, mode = 'wal' }: { readonly runs?: number; readonly mode?: 'wal' | 'delete' } = {}): Promise<void> {
  const db = await openDatabase(file);
  db.exec(`PRAGMA journal_mode = ${mode}`);
  if (version === 0) db.exec(PREDECESSOR);
  else migrate(db, MIGRATIONS.slice(0, version));
  for (let number = 1; number <= runs; number += 1) fill(db, version, number);
  // All of it into the one file.
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}

function fill(db: Database, version: number, number: number): void {
  const [run, request] = [`run_${String(number).padStart(26, '0')}`, `req_${number}`];
  if (version === 0) db.prepare('INSERT INTO request_interactive_runtime VALUES (?, ?, ?, ?, ?, ?, ?)').run(request, '{"kind":"resumable"}', 900 + number, `{"handle_value":"${'h'.repeat(600)}"}`, '2026-01-01T00:00:00Z', '{"pid":1}', '2026-01-02T00:00:00Z');
  else db.prepare('INSERT INTO request_interactive_runtime VALUES (?, ?, ?, ?)').run(request, 1200, null, '2026-01-02T00:00:00.000Z');
  if (version < 2) return;
  const spec = JSON.stringify({ engine: 'codex', execution_mode: 'interactive', prompt: 'p'.repeat(900), cwd: '/work', home: null, permission: 'workspace-write', runtime_options: {}, labels: { n: String(number) } });
  db.prepare(`INSERT INTO runs (run_id, request_id, request_digest, engine, spec_json, status, attempt_number, epoch, created_at, updated_at, queued_at, rasp_seq, fcmp_seq, ts, digest) VALUES (?, ?, 'd', 'codex', ?, 'waiting_user', 2, 1, ?, ?, NULL, ?, ?, 1, 'x')`).run(run, request, spec, number, number, JOURNAL.rasp.last, JOURNAL.fcmp.last);
  db.prepare('INSERT INTO run_labels VALUES (?, ?, ?)').run(run, 'n', String(number));
  db.prepare(`INSERT INTO interactions VALUES (?, ?, 1, '{"prompt":"Which?"}', 'answered', 1000, 2000, 0, '{"at":1500}')`).run(`int_${number}a`, run);
  db.prepare(`INSERT INTO interactions VALUES (?, ?, 2, '{"prompt":"Which?"}', 'pending', 3000, 4000, 0, NULL)`).run(`int_${number}b`, run);
  db.prepare(`INSERT INTO turns VALUES (?, 1, 'codex', 'codex_ndjson', 1, 1, 0, '{}', 'completed', 'ENGINE_SUCCESS')`).run(run);
  for (const [protocol, { body, last }] of Object.entries(JOURNAL)) db.prepare('INSERT INTO segments VALUES (?, ?, 1, ?, 1, 1, ?)').run(run, protocol, last, body);
}

// Looks at a copy: even a reader leaves files beside a database. Null if it cannot be read.
export async function look<T>(file: string, work: (db: Database) => T): Promise<T | null> {
  const copy = `${file}-look`;
  let db: Database | undefined;
  try {
    for (const ending of ['', '-wal']) if (existsSync(`${file}${ending}`)) copyFileSync(`${file}${ending}`, `${copy}${ending}`);
    db = await openDatabase(copy);
    return work(db);
  } catch {
    return null;
  } finally {
    db?.close();
    for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(`${copy}${ending}`, { force: true });
  }
}

// Everything in it, as text; the rows in their order. Null if it cannot be read whole.
export function dump(file: string): Promise<string | null> {
  return look(file, (db) => {
    const schema = db.prepare('SELECT name, type, sql FROM sqlite_master ORDER BY name').all() as { name: string; type: string }[];
    const rows = schema.filter(({ type, name }) => type === 'table' && !name.startsWith('sqlite_')).map(({ name }) => [name, allOf(db, name)]);
    const check = db.prepare('PRAGMA integrity_check').all();
    if (JSON.stringify(check) !== '[{"integrity_check":"ok"}]') return null;
    return JSON.stringify([db.prepare('PRAGMA user_version').get(), schema, rows], (_key, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('base64') : typeof value === 'bigint' ? String(value) : value));
  });
}

// Damage makes numbers that JavaScript cannot hold.
function allOf(db: Database, table: string): unknown[] {
  const rows = db.prepare(`SELECT * FROM "${table}"`);
  rows.setReadBigInts(true);
  return rows.all();
}
