// The numbered steps from an empty (or an older) database to the present one. A step that was published never changes.
import { FIRST_DIGEST } from '../digest.js';
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
  { version: 6, name: 'browser sessions, sign-in codes, token uses and the administrative journal', up: createAccess },
  { version: 7, name: 'folders as columns, counts of deleted runs, valid timeouts', up: addRunColumns },
  { version: 8, name: 'crashes of hosts are counted', up: addCrashes },
  { version: 9, name: 'runs by the end of their id', up: addTails },
  { version: 10, name: 'every session and cancel request has its event; whole deadlines', up: roundDeadlines },
  { version: 11, name: 'small flushes are stored in groups', up: addGroups },
  { version: 12, name: 'totals and indexes, so that costs do not grow with the number of runs', up: addTotals },
];

// The default of session_timeout_sec, for rows whose value cannot be a timeout.
const DEFAULT_TIMEOUT_SEC = 1200;
const LONGEST_TIMEOUT_SEC = 31_536_000;
// Whole seconds, as a number or as digits; anything else becomes the default.
const validTimeout = (value: string): string => `CASE WHEN ${value} = CAST(${value} AS INTEGER)
  AND (typeof(${value}) <> 'text' OR ${value} NOT GLOB '*[^0-9]*') AND CAST(${value} AS INTEGER) BETWEEN 1
    AND ${LONGEST_TIMEOUT_SEC}
  THEN CAST(${value} AS INTEGER) ELSE ${DEFAULT_TIMEOUT_SEC} END`;

const RUNTIME_COLUMNS =
  'request_id:TEXT::1 effective_session_timeout_sec:INTEGER:1:0 session_handle_json:TEXT:0:0 updated_at:TEXT:1:0';

const RUNTIME_TABLE = `CREATE TABLE request_interactive_runtime (
  request_id TEXT PRIMARY KEY,
  effective_session_timeout_sec INTEGER NOT NULL,
  session_handle_json TEXT,
  updated_at TEXT NOT NULL
)`;

// The database of a predecessor has more columns in this table, and may have several rows of one request: of those the
// newest is kept, with its handle, and with its timeout if that is one. Everything else is dropped.
function migrateInteractiveRuntime(db: Database): void {
  const info = `SELECT tell_value(name || ':' || type || ':' || iif(pk, '', "notnull") || ':' || pk)
    FROM pragma_table_info('request_interactive_runtime')`;
  const existing = tell(db, info);
  const columns = new Set(existing.map((column) => column.split(':')[0]));
  if (existing.length === 0) {
    db.exec(RUNTIME_TABLE);
    return;
  }
  if (existing.join(' ') === RUNTIME_COLUMNS) return;
  const has = (name: string, otherwise: string) => (columns.has(name) ? name : otherwise);
  db.exec('ALTER TABLE request_interactive_runtime RENAME TO request_interactive_runtime_old');
  db.exec(RUNTIME_TABLE);
  const newest = `row_number() OVER (PARTITION BY request_id ORDER BY ${has('updated_at', 'NULL')} DESC,
    rowid DESC) AS place`;
  db.exec(`INSERT INTO request_interactive_runtime
    SELECT request_id, ${validTimeout(has('effective_session_timeout_sec', 'NULL'))},
      ${has('session_handle_json', 'NULL')},
           COALESCE(${has('updated_at', 'NULL')}, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    FROM (SELECT *, rowid AS row_number, ${newest} FROM request_interactive_runtime_old)
    WHERE place = 1 OR request_id IS NULL ORDER BY row_number`);
  db.exec('DROP TABLE request_interactive_runtime_old');
}

// A segment is a row with a rowid although it has a key of its own: large bodies inside a key's tree cost nearly twice
// as much.
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
  SELECT SUM(MAX(0, json_extract(resolution_json, '$.at') - asked_at)) FROM interactions
  WHERE interactions.run_id = runs.run_id AND resolution_json IS NOT NULL
), 0);
`);
}

// Existing data stays unchanged.
function addPacking(db: Database): void {
  db.exec('ALTER TABLE segments ADD COLUMN packed INTEGER NOT NULL DEFAULT 0');
}

// Folders are columns of their own, so that a run whose JSON is damaged can still be found by them and deleted: an
// index over the JSON would refuse that. deleted_turns holds the counts of turns whose runs were deleted, added up.
function addRunColumns(db: Database): void {
  db.exec(`
DROP INDEX runs_by_home;
ALTER TABLE runs ADD COLUMN cwd TEXT;
ALTER TABLE runs ADD COLUMN home TEXT;
ALTER TABLE runs ADD COLUMN continues INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET cwd = json_extract(spec_json, '$.cwd'), home = json_extract(spec_json, '$.home'),
  continues = json_extract(spec_json, '$.continue_from') IS NOT NULL WHERE json_valid(spec_json);
CREATE INDEX runs_by_home ON runs (home);
CREATE INDEX runs_by_cwd ON runs (cwd, run_id) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE TABLE deleted_turns (
  engine TEXT NOT NULL,
  profile TEXT NOT NULL,
  measure TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (engine, profile, measure)
) WITHOUT ROWID;
UPDATE request_interactive_runtime SET effective_session_timeout_sec = ${validTimeout('effective_session_timeout_sec')}
  WHERE request_id NOT IN (SELECT request_id FROM runs);
`);
}

// Secrets are stored as SHA-256 only. The journal's triggers prevent mistakes; `parley audit --verify` detects changes
// that bypass them.
function createAccess(db: Database): void {
  db.exec(`
CREATE TABLE sessions (
  sha256 TEXT PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  token_sha256 TEXT NOT NULL,
  token TEXT,
  person TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  address TEXT,
  user_agent TEXT
);
CREATE INDEX sessions_by_token ON sessions (token_sha256, created_at);
CREATE INDEX sessions_by_person ON sessions (person, session_id);
CREATE INDEX sessions_by_end ON sessions (ends_at);
CREATE TABLE sign_in_codes (
  sha256 TEXT PRIMARY KEY,
  token_sha256 TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes (expires_at);
CREATE TABLE token_uses (
  token_sha256 TEXT PRIMARY KEY,
  used_at INTEGER NOT NULL,
  address TEXT
);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  ts INTEGER NOT NULL,
  type TEXT NOT NULL,
  actor_json TEXT,
  address TEXT,
  body_json TEXT NOT NULL,
  digest TEXT NOT NULL
);
CREATE INDEX audit_by_type ON audit (type, seq);
CREATE TABLE audit_head (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  seq INTEGER NOT NULL,
  digest TEXT NOT NULL
);
INSERT INTO audit_head VALUES (1, 0, '${FIRST_DIGEST}');
CREATE TRIGGER audit_keeps_rows BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'rows of the administrative journal are never deleted'); END;
CREATE TRIGGER audit_keeps_values BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'rows of the administrative journal are never changed'); END;
`);
}

// The number is TAIL_CHARS.
function addTails(db: Database): void {
  db.exec('CREATE INDEX runs_by_tail ON runs (substr(run_id, -6))');
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

// The end of the year 9999.
const LATEST_MS = 253_402_300_799_999;

// From this version on, lifecycle.run.created has a fold_version: every stored session and cancel request has its
// event. Earlier programs write these rows without events, so they have to refuse the database. They also stored
// deadlines with fractions of a millisecond, which are rounded. Values that are no time are left for `parley doctor`.
function roundDeadlines(db: Database): void {
  db.exec(`UPDATE interactions SET due_at = CAST(ROUND(due_at) AS INTEGER)
    WHERE typeof(due_at) = 'real' AND due_at BETWEEN 0 AND ${LATEST_MS}`);
}

// event_groups holds recent flushes of all runs. A segment made of several flushes has the count of lines of each.
function addGroups(db: Database): void {
  db.exec(`
CREATE TABLE event_groups (
  group_id INTEGER PRIMARY KEY,
  body BLOB NOT NULL,
  packed INTEGER NOT NULL
);
ALTER TABLE segments ADD COLUMN flushes TEXT;
`);
}

// totals has what the metrics show: how many runs, pending questions and deliveries are stored in each state, and the
// counts of all turns, those of deleted runs included. Triggers maintain it, so a total changes in the transaction of
// its row, whichever statement changes the row. A damaged count of a turn is left out.
// Text that is not a JSON object counts as an empty one.
const objectOf = (text: string): string =>
  `iif(iif(json_valid(${text}), json_type(${text}), '') = 'object', ${text}, '{}')`;

const TURN_MEASURES = (row: string): string => {
  const measures = ['units', 'parsed', 'fallbacks'];
  const counts = measures.map((name) => `SELECT '${name}' AS measure, ${row}.${name} AS count`);
  return `SELECT 'turns' AS measure, 1 AS count
    UNION ALL ${counts.join(' UNION ALL ')}
    UNION ALL SELECT 'warning:' || warning.key, warning.value
      FROM json_each(${objectOf(`${row}.warnings_json`)}) AS warning
    UNION ALL SELECT 'unknown:' || ${row}.reason_code, 1 WHERE ${row}.completion = 'unknown'`;
};
const SOUND_COUNT = `typeof(count) = 'integer' AND count BETWEEN 1 AND 1000000000000`;
const addToState = (subject: string, state: string, by: number): string =>
  `INSERT INTO totals (subject, measure, count) VALUES ('${subject}', ${state}, ${by})
    ON CONFLICT DO UPDATE SET count = count + excluded.count;`;

// Counts the rows of a table by this column. `only`: the states that are counted.
function createStateTriggers(
  db: Database,
  table: string,
  { column, only }: { readonly column: string; readonly only?: string },
): void {
  const when = (row: string): string => (only === undefined ? '' : `WHEN ${row}.${column} IN (${only})`);
  const where = only === undefined ? '' : `WHERE ${column} IN (${only})`;
  const changed = `OF ${column} ON ${table} WHEN old.${column} IS NOT new.${column}`;
  const andOnly = (row: string): string => (only === undefined ? '' : `AND ${row}.${column} IN (${only})`);
  db.exec(`
INSERT INTO totals (subject, measure, count) SELECT '${table}', ${column}, COUNT(*) FROM ${table} ${where} GROUP BY 2;
CREATE TRIGGER ${table}_added AFTER INSERT ON ${table} ${when('new')}
  BEGIN ${addToState(table, `new.${column}`, 1)} END;
CREATE TRIGGER ${table}_removed AFTER DELETE ON ${table} ${when('old')}
  BEGIN ${addToState(table, `old.${column}`, -1)} END;
CREATE TRIGGER ${table}_entered AFTER UPDATE ${changed} ${andOnly('new')}
  BEGIN ${addToState(table, `new.${column}`, 1)} END;
CREATE TRIGGER ${table}_left AFTER UPDATE ${changed} ${andOnly('old')}
  BEGIN ${addToState(table, `old.${column}`, -1)} END;
`);
}

// Each index serves a query that otherwise reads rows in proportion to the number of runs: tests/store/plans.test.ts. A
// question repeats the engine of its run, so that the questions of one engine are found in their order.
function addTotals(db: Database): void {
  db.exec(`
ALTER TABLE interactions ADD COLUMN engine TEXT;
UPDATE interactions SET engine = (SELECT engine FROM runs WHERE runs.run_id = interactions.run_id);
CREATE INDEX run_labels_by_run ON run_labels (run_id);
CREATE INDEX runs_by_engine ON runs (engine, run_id);
CREATE INDEX runs_by_status_and_engine ON runs (status, engine, run_id);
DROP INDEX runs_by_home;
CREATE INDEX runs_by_home ON runs (home, run_id);
CREATE INDEX runs_ended ON runs (updated_at, run_id) WHERE status IN ('succeeded', 'failed', 'canceled');
CREATE INDEX runs_at_work_by_home ON runs (home, run_id) WHERE status IN ('queued', 'running', 'waiting_user');
DROP INDEX pending_by_age;
CREATE INDEX pending_by_age ON interactions (asked_at, interaction_id, due_at, run_id) WHERE state = 'pending';
CREATE INDEX pending_by_engine ON interactions (engine, asked_at, interaction_id, due_at, run_id)
  WHERE state = 'pending';
CREATE INDEX pending_by_due ON interactions (due_at) WHERE state = 'pending';
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (hook, next_at, delivery_id) WHERE state = 'pending';
CREATE INDEX deliveries_by_run ON deliveries (run_id);
CREATE TABLE totals (
  subject TEXT NOT NULL,
  engine TEXT NOT NULL DEFAULT '',
  profile TEXT NOT NULL DEFAULT '',
  measure TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (subject, engine, profile, measure)
) WITHOUT ROWID;
CREATE TRIGGER turns_added AFTER INSERT ON turns BEGIN
  INSERT INTO totals (subject, engine, profile, measure, count)
    SELECT 'turns', new.engine, new.profile, measure, count FROM (${TURN_MEASURES('new')}) WHERE ${SOUND_COUNT}
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
INSERT INTO totals (subject, engine, profile, measure, count)
  SELECT 'turns', engine, profile, measure, count FROM deleted_turns
    WHERE typeof(count) = 'integer' AND count BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER};
DROP TABLE deleted_turns;
INSERT INTO totals (subject, engine, profile, measure, count)
  SELECT 'turns', engine, profile, measure, SUM(count)
  FROM (${storedMeasures()}) WHERE ${SOUND_COUNT} GROUP BY engine, profile, measure
  ON CONFLICT DO UPDATE SET count = count + excluded.count;
`);
  createStateTriggers(db, 'runs', { column: 'status' });
  createStateTriggers(db, 'interactions', { column: 'state', only: `'pending'` });
  createStateTriggers(db, 'deliveries', { column: 'state' });
}

const selectMeasure = (measure: string, count: string, rest = ''): string =>
  `SELECT engine, profile, ${measure} AS measure, ${count} AS count FROM turns ${rest}`;

function storedMeasures(): string {
  return [
    selectMeasure(`'turns'`, '1'),
    ...['units', 'parsed', 'fallbacks'].map((name) => selectMeasure(`'${name}'`, name)),
    selectMeasure(`'warning:' || warning.key`, 'warning.value', `, json_each(${objectOf('warnings_json')}) AS warning`),
    selectMeasure(`'unknown:' || reason_code`, '1', `WHERE completion = 'unknown'`),
  ].join(' UNION ALL ');
}
