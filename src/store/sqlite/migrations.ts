// The numbered steps from an empty (or an older) database to the present one. A step that was published never changes.
import { tell } from './check-tables.js';
import type { Database } from './open-database.js';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly up: (db: Database) => void;
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'interactive runtime without process bindings', up: migrateInteractiveRuntime },
  { version: 2, name: 'runs, interactions and journals', up: createTables },
  { version: 3, name: 'deliveries to webhooks', up: createDeliveries },
  { version: 4, name: 'how long runs have waited for people', up: addWaits },
  { version: 5, name: 'large pieces of journals are packed', up: addPacking },
  { version: 8, name: 'crashes of hosts are counted', up: addCrashes },
];

const RUNTIME_COLUMNS = ['request_id', 'effective_session_timeout_sec', 'session_handle_json', 'updated_at'];

const RUNTIME_TABLE = `CREATE TABLE request_interactive_runtime (
  request_id TEXT PRIMARY KEY,
  effective_session_timeout_sec INTEGER NOT NULL,
  session_handle_json TEXT,
  updated_at TEXT NOT NULL
)`;

// A database of the predecessor has more columns in this table: timeout and handle are kept, the rest is dropped.
function migrateInteractiveRuntime(db: Database): void {
  const columns = tell(db, `SELECT tell_value(name) FROM pragma_table_info('request_interactive_runtime')`);
  if (columns.length === 0) {
    db.exec(RUNTIME_TABLE);
    return;
  }
  if (columns.length === RUNTIME_COLUMNS.length && RUNTIME_COLUMNS.every((name) => columns.includes(name))) return;
  const has = (name: string, otherwise: string) => (columns.includes(name) ? name : otherwise);
  db.exec('ALTER TABLE request_interactive_runtime RENAME TO request_interactive_runtime_old');
  db.exec(RUNTIME_TABLE);
  db.exec(`INSERT INTO request_interactive_runtime
    SELECT request_id, COALESCE(${has('effective_session_timeout_sec', 'NULL')}, 1200), ${has('session_handle_json', 'NULL')},
           COALESCE(${has('updated_at', 'NULL')}, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    FROM request_interactive_runtime_old`);
  db.exec('DROP TABLE request_interactive_runtime_old');
}

// A segment is a row with a rowid although it has a key of its own: large bodies inside a key's tree cost nearly twice as much.
function createTables(db: Database): void {
  db.exec(`
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  request_digest TEXT NOT NULL,
  engine TEXT NOT NULL,
  spec_json TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt_number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  error_json TEXT,
  result_json TEXT,
  cancel_requested_json TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  queued_at INTEGER,
  rasp_seq INTEGER NOT NULL,
  fcmp_seq INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  digest TEXT NOT NULL
);
CREATE INDEX runs_by_home ON runs (json_extract(spec_json, '$.home'));
CREATE INDEX runs_by_status ON runs (status, run_id);
CREATE INDEX runs_queued ON runs (queued_at, run_id) WHERE status = 'queued';
CREATE TABLE run_labels (
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (key, value, run_id)
) WITHOUT ROWID;
CREATE TABLE interactions (
  interaction_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt_number INTEGER NOT NULL,
  question_json TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  decides INTEGER NOT NULL,
  resolution_json TEXT
);
CREATE UNIQUE INDEX one_pending_per_run ON interactions (run_id) WHERE state = 'pending';
CREATE INDEX pending_by_age ON interactions (asked_at, interaction_id) WHERE state = 'pending';
CREATE INDEX pending_by_decision ON interactions (due_at, interaction_id) WHERE state = 'pending' AND decides = 1;
CREATE INDEX interactions_by_run ON interactions (run_id);
CREATE TABLE turns (
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt_number INTEGER NOT NULL,
  engine TEXT NOT NULL,
  profile TEXT NOT NULL,
  units INTEGER NOT NULL,
  parsed INTEGER NOT NULL,
  fallbacks INTEGER NOT NULL,
  warnings_json TEXT NOT NULL,
  completion TEXT NOT NULL,
  reason_code TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt_number)
) WITHOUT ROWID;
CREATE TABLE segments (
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  protocol TEXT NOT NULL,
  seq_from INTEGER NOT NULL,
  seq_to INTEGER NOT NULL,
  ts_from INTEGER NOT NULL,
  ts_to INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX segments_by_seq ON segments (run_id, protocol, seq_from);
`);
}

// Without a reference to the run: a notification outlives it.
function createDeliveries(db: Database): void {
  db.exec(`
CREATE TABLE deliveries (
  delivery_id TEXT PRIMARY KEY,
  hook TEXT NOT NULL,
  type TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  run_id TEXT NOT NULL,
  rasp_seq INTEGER NOT NULL,
  digest TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  tries INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  error TEXT
);
CREATE INDEX deliveries_due ON deliveries (next_at, delivery_id, hook) WHERE state = 'pending';
CREATE INDEX deliveries_given_up ON deliveries (next_at, run_id) WHERE state = 'given_up';
`);
}

function addWaits(db: Database): void {
  db.exec(`
ALTER TABLE runs ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET waited_ms = COALESCE((
  SELECT SUM(MAX(0, json_extract(resolution_json, '$.at') - asked_at)) FROM interactions WHERE interactions.run_id = runs.run_id AND resolution_json IS NOT NULL
), 0);
`);
}

// What is there stays as it is.
function addPacking(db: Database): void {
  db.exec('ALTER TABLE segments ADD COLUMN packed INTEGER NOT NULL DEFAULT 0');
}

// at_work: a process is about to start the run, or runs it.
function addCrashes(db: Database): void {
  db.exec(`
ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN at_work INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET at_work = 1 WHERE status = 'running';
CREATE INDEX runs_at_work ON runs (run_id) WHERE at_work = 1;
`);
}
