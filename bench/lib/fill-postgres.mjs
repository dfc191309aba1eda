// Fills a migrated PostgreSQL database with the runs of fill-runs.mjs, through SQL. Needs a superuser, because the
// triggers that maintain the totals are off meanwhile; the totals are counted afterwards.
import { Client } from 'pg';
import { pairKey } from '../../dist/store/postgres/connection/text.js';
import { BODY, FEW, HOUR_MS, NOW, SPEC } from './fill-runs.mjs';

// Of each run: its number, its id, the time of its end, its state and its engine.
const RUNS = `SELECT number, 'run_' || lpad(number::text, 26, '0') AS id,
    ${NOW}::bigint - ($1::int - number) * 1000 AS at,
    CASE number % 10 WHEN 1 THEN 'waiting_user' WHEN 2 THEN 'queued' WHEN 3 THEN 'failed' ELSE 'succeeded' END
      AS status,
    CASE WHEN number < ${FEW * 10} AND number % 10 = 1 THEN 'gemini' ELSE 'codex' END AS engine
  FROM generate_series(0, $1::int - 1) AS number`;

const QUESTION = '{"kind":"open_text","prompt":"Which of the two?","options":[]}';

// The values after the number of runs.
const STATEMENTS = [
  [
    `INSERT INTO parley.runs (run_id, request_id, request_digest, engine, spec_json, cwd, home, continues, status,
      place, attempt_number, epoch, waited_ms, exported_seq, created_at, updated_at, queued_at, rasp_seq, fcmp_seq, ts,
      digest,
      last_commit)
    SELECT id, 'req_' || number, repeat('0', 64), engine,
      ($2::jsonb || jsonb_build_object('engine', engine, 'cwd', $3 || '/runs/' || id || '/workspace', 'home',
        $3 || '/runs/' || id || '/home', 'labels', jsonb_build_object('half',
        CASE number % 2 WHEN 0 THEN 'yes' ELSE 'no' END)))::text,
      $3 || '/runs/' || id || '/workspace', $3 || '/runs/' || id || '/home', false, status, $3, 1, 1, 0, 8, at, at,
      at, 8, 8, at, repeat('0', 64), gen_random_uuid() FROM (${RUNS}) AS run`,
    ({ place }) => [JSON.stringify(SPEC), place],
  ],
  [
    `INSERT INTO parley.run_labels (run_id, pair)
    SELECT id, CASE number % 2 WHEN 0 THEN $2 ELSE $3 END FROM (${RUNS}) AS run
    UNION ALL SELECT id, $4 FROM (${RUNS}) AS run WHERE number < ${FEW * 10} AND number % 10 = 3`,
    () => [pairKey('half', 'yes'), pairKey('half', 'no'), pairKey('few', 'yes')],
  ],
  [
    `INSERT INTO parley.request_interactive_runtime (request_id, effective_session_timeout_sec, updated_at)
    SELECT 'req_' || number, 1200, to_timestamp(at / 1000.0)::text FROM (${RUNS}) AS run`,
    () => [],
  ],
  [
    `INSERT INTO parley.turns (run_id, attempt_number, engine, profile, units, parsed, fallbacks, warnings_json,
      completion, reason_code)
    SELECT id, 1, engine, engine || '_ndjson', 40, 39, 1, '{"ODD_LINE":1}', 'completed', 'ENGINE_SUCCESS'
    FROM (${RUNS}) AS run WHERE status <> 'queued'`,
    () => [],
  ],
  [
    `INSERT INTO parley.segments (run_id, protocol, epoch, seq_from, seq_to, ts_from, ts_to, body)
    SELECT id, protocol, 1, 1, 8, at, at, $2 FROM (${RUNS}) AS run, (VALUES ('rasp'), ('fcmp')) AS each (protocol)`,
    () => [BODY],
  ],
  [
    `INSERT INTO parley.interactions (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at,
      decides, engine)
    SELECT 'int_' || lpad(number::text, 26, '0'), id, 1, $2, 'pending', at,
      at + ${HOUR_MS}::bigint * CASE number % 20 WHEN 1 THEN 10000 ELSE 1 END, number % 20 = 1, engine
    FROM (${RUNS}) AS run WHERE status = 'waiting_user'`,
    () => [QUESTION],
  ],
  [
    `INSERT INTO parley.deliveries (delivery_id, hook, type, payload_json, run_id, rasp_seq, digest, created_at, state,
      tries, next_at)
    SELECT gen_random_uuid()::text, 'board', 'run.waiting_user', '{}', id, 8, repeat('0', 64), at, 'pending', 0, at
    FROM (${RUNS}) AS run WHERE status = 'waiting_user'`,
    () => [],
  ],
];

// `place`: the data directory of the runs.
export function fillPostgres(store, url, { count, place }) {
  return withClient(url, async (client) => {
    await client.query('SET session_replication_role = replica');
    for (const [text, values] of STATEMENTS) await client.query(text, [count, ...values({ place })]);
    await store.recountTotals();
    await client.query('VACUUM ANALYZE');
  });
}

// Whether Parley has used the database.
export function isUsed(url) {
  return withClient(url, async (client) => {
    const { rows } = await client.query(`SELECT to_regnamespace('parley') IS NOT NULL AS used`);
    return rows[0].used;
  });
}

// Removes everything that Parley has stored, for another fill.
export function emptyPostgres(url) {
  return withClient(url, (client) => client.query('DROP SCHEMA IF EXISTS parley CASCADE'));
}

async function withClient(url, work) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
