// The numbered steps from an empty (or an older) database to the present one. A step that was published never changes.

import { FIRST_DIGEST } from '../../digest.js';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

// Texts are ordered and compared by their bytes, whatever the language of the database is. JSON is text, because it
// must come back exactly as it was. cwd and home may be longer than a tree index takes, so they have hash indexes. A
// run's row changes with each flush: room in its page keeps its index entries where they are. A run whose files are on
// the disk of one host has its site; place is the data directory that its paths are in; resident is the host that has a
// process waiting with it; reserved_by is about to begin it. exported_seq: so far the files beside the journal are
// known to go. tokens are those of people and programs, by their hashes. leftovers are the files of deleted runs, until
// a host that has them has removed them. Event lines are not compressed: it costs more time than their reading and
// writing.
const TABLES = `
CREATE TABLE parley.hosts (
  host_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  started_at timestamptz NOT NULL,
  lease_until timestamptz NOT NULL,
  url text,
  site text COLLATE "C",
  place text COLLATE "C",
  info_json text NOT NULL
);
CREATE TABLE parley.runs (
  run_id text COLLATE "C" PRIMARY KEY,
  request_id text COLLATE "C" NOT NULL UNIQUE,
  request_digest text NOT NULL,
  engine text COLLATE "C" NOT NULL,
  spec_json text NOT NULL,
  cwd text COLLATE "C" NOT NULL,
  home text COLLATE "C",
  continues boolean NOT NULL,
  status text COLLATE "C" NOT NULL,
  attempt_number integer NOT NULL,
  epoch bigint NOT NULL,
  owner text COLLATE "C",
  site text COLLATE "C",
  place text COLLATE "C",
  resident text COLLATE "C",
  reserved_by text COLLATE "C",
  reserved_until timestamptz,
  error_json text,
  result_json text,
  cancel_requested_json text,
  waited_ms bigint NOT NULL,
  exported_seq bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  queued_at bigint,
  rasp_seq bigint NOT NULL,
  fcmp_seq bigint NOT NULL,
  ts bigint NOT NULL,
  digest text COLLATE "C" NOT NULL,
  last_commit uuid NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX runs_by_status ON parley.runs (status, run_id);
CREATE INDEX runs_queued ON parley.runs (queued_at, run_id) WHERE status = 'queued';
CREATE INDEX runs_unexported ON parley.runs (updated_at)
WHERE exported_seq < rasp_seq AND status IN ('waiting_user', 'succeeded', 'failed', 'canceled');
CREATE INDEX runs_wished ON parley.runs (run_id)
WHERE cancel_requested_json IS NOT NULL AND status IN ('queued', 'waiting_user');
CREATE INDEX runs_owned ON parley.runs (owner, run_id) WHERE status = 'running';
CREATE INDEX runs_by_home ON parley.runs USING hash (home);
CREATE INDEX runs_by_cwd ON parley.runs USING hash (cwd);
CREATE TABLE parley.request_interactive_runtime (
  request_id text COLLATE "C" PRIMARY KEY,
  effective_session_timeout_sec double precision NOT NULL,
  session_handle_json text,
  updated_at text NOT NULL
);
CREATE TABLE parley.run_labels (
  run_id text COLLATE "C" NOT NULL REFERENCES parley.runs ON DELETE CASCADE,
  pair text COLLATE "C" NOT NULL,
  PRIMARY KEY (pair, run_id)
);
CREATE INDEX run_labels_by_run ON parley.run_labels (run_id);
CREATE TABLE parley.interactions (
  interaction_id text COLLATE "C" PRIMARY KEY,
  run_id text COLLATE "C" NOT NULL REFERENCES parley.runs ON DELETE CASCADE,
  attempt_number integer NOT NULL,
  question_json text NOT NULL,
  state text COLLATE "C" NOT NULL,
  asked_at bigint NOT NULL,
  due_at bigint NOT NULL,
  decides boolean NOT NULL,
  idempotency_key text COLLATE "C",
  resolution_json text
);
CREATE UNIQUE INDEX one_pending_per_run ON parley.interactions (run_id) WHERE state = 'pending';
CREATE INDEX pending_by_age ON parley.interactions (asked_at, interaction_id) WHERE state = 'pending';
CREATE INDEX pending_by_decision ON parley.interactions (due_at, interaction_id) WHERE state = 'pending' AND decides;
CREATE INDEX interactions_by_run ON parley.interactions (run_id);
CREATE TABLE parley.turns (
  run_id text COLLATE "C" NOT NULL REFERENCES parley.runs ON DELETE CASCADE,
  attempt_number integer NOT NULL,
  engine text COLLATE "C" NOT NULL,
  profile text COLLATE "C" NOT NULL,
  units bigint NOT NULL,
  parsed bigint NOT NULL,
  fallbacks bigint NOT NULL,
  warnings_json text NOT NULL,
  completion text NOT NULL,
  reason_code text COLLATE "C" NOT NULL,
  PRIMARY KEY (run_id, attempt_number)
);
CREATE TABLE parley.segments (
  run_id text COLLATE "C" NOT NULL REFERENCES parley.runs ON DELETE CASCADE,
  protocol text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  seq_from bigint NOT NULL,
  seq_to bigint NOT NULL,
  ts_from bigint NOT NULL,
  ts_to bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (run_id, protocol, seq_from)
);
ALTER TABLE parley.segments ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE parley.tokens (
  name text COLLATE "C" PRIMARY KEY,
  role text NOT NULL,
  sha256 text NOT NULL,
  created_at text NOT NULL
);
CREATE TABLE parley.leftovers (
  run_id text COLLATE "C" PRIMARY KEY,
  site text COLLATE "C",
  place text COLLATE "C"
);
`;

// Without a reference to the run: a notification outlives it. claimed_by is sending it, until claimed_until.
const DELIVERIES = `
CREATE TABLE parley.deliveries (
  delivery_id text COLLATE "C" PRIMARY KEY,
  hook text COLLATE "C" NOT NULL,
  type text NOT NULL,
  payload_json text NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  rasp_seq bigint NOT NULL,
  digest text NOT NULL,
  created_at bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  tries integer NOT NULL,
  next_at bigint NOT NULL,
  error text,
  claimed_by text COLLATE "C",
  claimed_until timestamptz
);
CREATE INDEX deliveries_due ON parley.deliveries (next_at, delivery_id) WHERE state = 'pending';
CREATE INDEX deliveries_claimed ON parley.deliveries (claimed_until) WHERE claimed_by IS NOT NULL;
CREATE INDEX deliveries_given_up ON parley.deliveries (next_at, run_id) WHERE state = 'given_up';
`;

// Tokens were derived from it until version 6, which deletes it.
const SECRET = `INSERT INTO parley.meta (key, value)
  VALUES ('secret', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));`;

// retry_at: a host is deciding the question, or it could not be decided; until then it is left alone.
// generation: see host-lease.ts. deleted_turns: counts of turns whose runs were deleted, added up.
// count_warnings leaves out text that is damaged, so that one bad row does not fail the sum over all.
const DECISIONS = `
ALTER TABLE parley.interactions ADD COLUMN retry_at bigint;
DROP INDEX parley.pending_by_decision;
CREATE INDEX pending_by_decision ON parley.interactions (COALESCE(retry_at, due_at), interaction_id)
  WHERE state = 'pending' AND decides;
ALTER TABLE parley.hosts ADD COLUMN generation integer NOT NULL DEFAULT 1;
ALTER TABLE parley.hosts ALTER COLUMN generation DROP DEFAULT;
CREATE TABLE parley.deleted_turns (
  engine text COLLATE "C" NOT NULL,
  profile text COLLATE "C" NOT NULL,
  measure text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (engine, profile, measure)
);
CREATE FUNCTION parley.count_warnings(warnings text) RETURNS TABLE (name text,
  count bigint) LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN QUERY SELECT each.key, each.value::bigint FROM json_each_text(warnings::json) AS each;
EXCEPTION WHEN others THEN
  RETURN;
END $$;
`;

// Browser sessions, sign-in codes, when tokens were last used, and the administrative journal. Secrets are stored
// as SHA-256 only. The journal's triggers prevent mistakes; `parley audit --verify` detects changes that bypass them.
const ACCESS = `
ALTER TABLE parley.tokens ADD COLUMN person text;
ALTER TABLE parley.tokens ADD COLUMN expires_at text;
CREATE TABLE parley.sessions (
  sha256 text COLLATE "C" PRIMARY KEY,
  session_id text COLLATE "C" NOT NULL UNIQUE,
  token_sha256 text COLLATE "C" NOT NULL,
  token text,
  person text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  last_used_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  ends_at bigint NOT NULL,
  address text,
  user_agent text
);
CREATE INDEX sessions_by_token ON parley.sessions (token_sha256, created_at);
CREATE INDEX sessions_by_person ON parley.sessions (person, session_id);
CREATE INDEX sessions_by_end ON parley.sessions (ends_at);
CREATE TABLE parley.sign_in_codes (
  sha256 text COLLATE "C" PRIMARY KEY,
  token_sha256 text COLLATE "C" NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sign_in_codes_by_expiry ON parley.sign_in_codes (expires_at);
CREATE TABLE parley.token_uses (
  token_sha256 text COLLATE "C" PRIMARY KEY,
  used_at bigint NOT NULL,
  address text
);
CREATE TABLE parley.audit (
  seq bigint PRIMARY KEY,
  ts bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  actor_json text,
  address text,
  body_json text NOT NULL,
  digest text NOT NULL
);
CREATE INDEX audit_by_type ON parley.audit (type, seq);
CREATE TABLE parley.audit_head (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  seq bigint NOT NULL,
  digest text NOT NULL
);
INSERT INTO parley.audit_head (seq, digest) VALUES (0, '${FIRST_DIGEST}');
CREATE FUNCTION parley.keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of the administrative journal are never changed or deleted';
END
$$;
CREATE TRIGGER audit_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON parley.audit
  FOR EACH STATEMENT EXECUTE FUNCTION parley.keep_audit();
`;

// The number is TAIL_CHARS.
const TAILS = 'CREATE INDEX runs_by_tail ON parley.runs (right(run_id, 6));';

// crashed_by: the hosts that died while they were about to start this turn of the run, or ran it. at_work: its owner
// runs it, and does not only end it for a host that died. What a host of an earlier version has reserved and left is no
// crash.
const CRASHES = `
ALTER TABLE parley.runs ADD COLUMN crashed_by text[] COLLATE "C" NOT NULL DEFAULT '{}',
  ADD COLUMN at_work boolean NOT NULL DEFAULT false;
UPDATE parley.runs SET at_work = true WHERE status = 'running';
UPDATE parley.runs SET reserved_by = NULL, reserved_until = NULL WHERE reserved_by IS NOT NULL;
CREATE INDEX runs_crashed ON parley.runs (run_id)
WHERE crashed_by <> '{}' AND status IN ('queued', 'running', 'waiting_user');
`;

// Until here tokens were derived from a secret in parley.meta, so a reader of the database could make them. Now the
// database has only hashes and public keys: operator_tokens has the token of each data directory, hosts what each of
// them identifies itself with. These columns have no default, so the database refuses hosts of earlier versions.
// database_id names the database and is no secret.
const HASHES_ONLY = `
CREATE TABLE parley.operator_tokens (
  sha256 text COLLATE "C" PRIMARY KEY,
  directory text COLLATE "C" NOT NULL UNIQUE,
  user_name text NOT NULL,
  host_name text NOT NULL,
  created_at timestamptz NOT NULL,
  registered_at timestamptz NOT NULL
);
CREATE INDEX operator_tokens_by_age ON parley.operator_tokens (registered_at);
ALTER TABLE parley.hosts ADD COLUMN token_sha256 text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN public_key text NOT NULL DEFAULT '';
ALTER TABLE parley.hosts ALTER COLUMN token_sha256 DROP DEFAULT, ALTER COLUMN public_key DROP DEFAULT;
INSERT INTO parley.meta (key, value) VALUES ('database_id', gen_random_uuid()::text);
DELETE FROM parley.meta WHERE key IN ('secret', 'operator_secret');
`;

// From here on, lifecycle.run.created has a fold_version: every stored session and cancel request has its event. Hosts
// of earlier versions write these rows without events, so the database refuses them. NOT VALID: their old rows stay.
const EVENT_FOR_EACH_ROW = `
ALTER TABLE parley.hosts ADD CONSTRAINT hosts_write_an_event_for_each_row CHECK (generation >= 4) NOT VALID;
`;

// More than any turn counts: a larger count is damaged and left out.
const MOST_COUNTED = 1_000_000_000_000;
// A larger sum is damaged. It stays damaged without an overflow.
const MOST_SUMMED = 2 ** 62;
const FOLDED_AFTER = 256;
const FOLDED_AT_ONCE = 10_000;

const countStates = (table: string, column: string, only = ''): string => {
  const counted = (row: string): string => (only === '' ? 'true' : `${row}.${column} = ${only}`);
  const change = (row: string, by: number): string =>
    `INSERT INTO parley.totals (subject, measure, count) VALUES ('${table}', ${row}.${column}, ${by});`;
  return `
INSERT INTO parley.totals (subject, measure, count)
  SELECT '${table}', ${column}, count(*) FROM parley.${table} WHERE ${counted(table)} GROUP BY 2;
CREATE FUNCTION parley.count_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'DELETE' AND ${counted('NEW')} THEN ${change('NEW', 1)} END IF;
  IF TG_OP <> 'INSERT' AND ${counted('OLD')} THEN ${change('OLD', -1)} END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ${table}_added_or_removed AFTER INSERT OR DELETE ON parley.${table}
  FOR EACH ROW EXECUTE FUNCTION parley.count_${table}();
CREATE TRIGGER ${table}_changed AFTER UPDATE OF ${column} ON parley.${table}
  FOR EACH ROW WHEN (OLD.${column} IS DISTINCT FROM NEW.${column}) EXECUTE FUNCTION parley.count_${table}();
`;
};

// totals has what the metrics show: how many runs, pending questions and deliveries are stored in each state, and the
// counts of all turns, those of deleted runs included. A total is the sum of its rows. Triggers add a row for each
// change, in the transaction of the change, and no transaction waits for another: with one row per total, all changes
// of all hosts would wait for its lock, each for the disk of the one before. Every FOLDED_AFTER rows, the transaction
// that adds the row replaces all rows that nobody else is replacing by their sums, so there are always few of them.
//
// The indexes serve queries that otherwise read rows in proportion to the number of runs. A question repeats the engine
// of its run, so that the questions of one engine are found in their order.
const TOTALS = `
ALTER TABLE parley.interactions ADD COLUMN engine text COLLATE "C";
UPDATE parley.interactions SET engine = (SELECT engine FROM parley.runs WHERE runs.run_id = interactions.run_id);
CREATE INDEX runs_by_engine ON parley.runs (engine, run_id);
CREATE INDEX runs_by_status_and_engine ON parley.runs (status, engine, run_id);
CREATE INDEX runs_ended ON parley.runs (updated_at, run_id) WHERE status IN ('succeeded', 'failed', 'canceled');
CREATE INDEX runs_at_work_by_home ON parley.runs USING hash (home)
  WHERE status IN ('queued', 'running', 'waiting_user');
DROP INDEX parley.runs_by_cwd;
CREATE INDEX runs_by_cwd ON parley.runs USING hash (cwd) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE INDEX pending_by_engine ON parley.interactions (engine, asked_at, interaction_id) WHERE state = 'pending';
CREATE INDEX pending_by_due ON parley.interactions (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_by_run ON parley.deliveries (run_id);
CREATE TABLE parley.totals (
  entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject text COLLATE "C" NOT NULL,
  engine text COLLATE "C" NOT NULL DEFAULT '',
  profile text COLLATE "C" NOT NULL DEFAULT '',
  measure text COLLATE "C" NOT NULL,
  count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE FUNCTION parley.fold_totals() RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM parley.totals WHERE entry_id = ANY(ARRAY(
      SELECT entry_id FROM parley.totals ORDER BY entry_id LIMIT ${FOLDED_AT_ONCE} FOR UPDATE SKIP LOCKED))
    RETURNING subject, engine, profile, measure, count
  )
  INSERT INTO parley.totals (subject, engine, profile, measure, count)
  SELECT subject, engine, profile, measure, LEAST(sum(count), ${MOST_SUMMED})::bigint FROM folded
  GROUP BY subject, engine, profile, measure HAVING sum(count) <> 0
$$;
CREATE FUNCTION parley.fold_totals_now() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM parley.fold_totals();
  RETURN NULL;
END $$;
CREATE TRIGGER totals_folded AFTER INSERT ON parley.totals
  FOR EACH ROW WHEN (NEW.entry_id % ${FOLDED_AFTER} = 0 AND pg_trigger_depth() < 2)
  EXECUTE FUNCTION parley.fold_totals_now();
CREATE FUNCTION parley.measures_of(turn parley.turns) RETURNS TABLE (measure text,
  count bigint) LANGUAGE sql STABLE AS $$
  SELECT * FROM (
    VALUES ('turns', 1::bigint), ('units', turn.units), ('parsed', turn.parsed), ('fallbacks', turn.fallbacks)
    UNION ALL SELECT 'warning:' || warning.name, warning.count FROM parley.count_warnings(turn.warnings_json) AS warning
    UNION ALL SELECT 'unknown:' || turn.reason_code, 1 WHERE turn.completion = 'unknown'
  ) AS each (measure, count) WHERE count BETWEEN 1 AND ${MOST_COUNTED}
$$;
CREATE FUNCTION parley.count_turns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO parley.totals (subject, engine, profile, measure, count)
    SELECT 'turns', NEW.engine, NEW.profile, each.measure, each.count FROM parley.measures_of(NEW) AS each;
  RETURN NULL;
END $$;
CREATE TRIGGER turns_added AFTER INSERT ON parley.turns FOR EACH ROW EXECUTE FUNCTION parley.count_turns();
INSERT INTO parley.totals (subject, engine, profile, measure, count)
  SELECT 'turns', engine, profile, measure, LEAST(count, ${MOST_SUMMED}) FROM parley.deleted_turns;
DROP TABLE parley.deleted_turns;
INSERT INTO parley.totals (subject, engine, profile, measure, count)
  SELECT 'turns', engine, profile, each.measure, sum(each.count)
  FROM parley.turns, LATERAL parley.measures_of(turns) AS each GROUP BY engine, profile, each.measure;
${countStates('runs', 'status')}
${countStates('interactions', 'state', `'pending'`)}
${countStates('deliveries', 'state')}
SELECT parley.fold_totals();
ALTER TABLE parley.hosts DROP CONSTRAINT hosts_write_an_event_for_each_row;
ALTER TABLE parley.hosts ADD CONSTRAINT hosts_read_totals CHECK (generation >= 5) NOT VALID;
`;

// Finds the sites and places that queued runs wait for, without reading the queue.
const QUEUED_PLACES = `
CREATE INDEX runs_queued_by_place ON parley.runs ((COALESCE(site, '')), (COALESCE(place, '')), queued_at, run_id)
  WHERE status = 'queued';
`;

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'hosts, runs, interactions, journals and deliveries', sql: TABLES + DELIVERIES + SECRET },
  { version: 2, name: 'browser sessions, sign-in codes, token uses and the administrative journal', sql: ACCESS },
  { version: 3, name: 'questions decided without jobs, counts of deleted runs', sql: DECISIONS },
  { version: 4, name: 'crashes of hosts are counted', sql: CRASHES },
  { version: 5, name: 'runs by the end of their id', sql: TAILS },
  { version: 6, name: 'hashes of tokens and public keys instead of a secret', sql: HASHES_ONLY },
  { version: 7, name: 'every session and cancel request has its event', sql: EVENT_FOR_EACH_ROW },
  { version: 8, name: 'totals and indexes, so that costs do not grow with the number of runs', sql: TOTALS },
  { version: 9, name: 'queued runs by the place that they wait for', sql: QUEUED_PLACES },
];
