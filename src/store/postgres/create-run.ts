// Creates and deletes runs under one lock, so that the checks for a known request, a full queue and a session in use
// are exact, also between hosts. Runs are created much less often than written to, and the lock is held for one commit.
import { randomUUID } from 'node:crypto';
import { toTimestamp } from '../../kernel/clock.js';
import { isTerminal, type RunState } from '../../run/statechart.js';
import { extendHeads } from '../extend-heads.js';
import type { RunRow } from '../rows.js';
import { EMPTY_JOURNAL, type CreateOutcome, type DeleteOutcome, type NewRun, type RunRecord } from '../store.js';
import { tombstoneOf, type AuditTrace } from '../audit.js';
import { readState, type StateTotals } from '../totals.js';
import { addSegments } from './append-journal.js';
import { auditStatements, LAST_AUDIT, LOCK_AUDIT } from './access/audit.js';
import { Composition, type Param } from './connection/compose.js';
import type { Database, Statement } from './connection/database.js';
import { isAlive } from './hosts/host-lease.js';
import { ifUncertain } from './connection/if-uncertain.js';
import { LOCK_SPACE } from './connection/migrate.js';
import type { Site } from './hosts/site.js';
import { statesStatement } from './totals.js';
import { SELECT_RUNS, toRunRecord } from './run-rows.js';
import { pairKey, toText } from './connection/text.js';

const COMING_AND_GOING = 2;
export const LOCK_RUNS: Statement = {
  name: 'lock-runs',
  text: `SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${COMING_AND_GOING})`,
  values: [],
};

export interface CreateOptions {
  // The site and place of the host that creates the run.
  readonly site: Site;
  // The notification for other hosts.
  readonly hint: string;
}

export async function createRun(db: Database, run: NewRun, options: CreateOptions): Promise<CreateOutcome> {
  return ifUncertain(
    () => tryCreate(db, run, { ...options, again: false }),
    () => tryCreate(db, run, { ...options, again: true }),
  );
}

// `again`: the result of an earlier attempt was lost.
function tryCreate(
  db: Database,
  run: NewRun,
  { site, hint, again }: CreateOptions & { readonly again: boolean },
): Promise<CreateOutcome> {
  const look = [
    LOCK_RUNS,
    known(run.request_id),
    statesStatement('runs'),
    atWorkIn(run.handle?.home ?? null),
    crashesOf(run.crashes_of ?? null),
  ];
  return db.transact<CreateOutcome>(look, (_, knownRows, queuedRows, workRows, crashRows) => {
    const row = knownRows?.rows[0] as RunRow | undefined;
    if (row) {
      const existing = toRunRecord(row);
      // The earlier attempt has created it.
      if (again && existing.run_id === run.run_id) return { leave: { created: true, run: existing } };
      return {
        leave: {
          created: false,
          reason: 'known',
          run: existing,
          sameRequest: row.request_digest === run.request_digest,
        },
      };
    }
    const queued = readState((queuedRows?.rows ?? []) as StateTotals, 'queued');
    if (queued >= run.queue_limit) return { leave: { created: false, reason: 'queue_full', queued } };
    const by = workRows?.rows[0] as { run_id: string } | undefined;
    if (by) return { leave: { created: false, reason: 'session_in_use', by: by.run_id } };
    const created = newRecord(run, (crashRows?.rows[0] as { crashes: number } | undefined)?.crashes ?? 0);
    return { write: [insertStatement(run, site, hint)], answer: { created: true, run: created } };
  });
}

// The run of a request id, if there is one.
export function known(requestId: string): Statement {
  return { name: 'load-request', text: `${SELECT_RUNS} WHERE request_id = $1`, values: [toText(requestId)] };
}

// Finds a run that has not ended and uses this home.
function atWorkIn(home: string | null): Statement {
  return {
    name: 'at-work-in',
    text: `SELECT run_id FROM parley.runs WHERE home = $1 AND status IN ('queued', 'running', 'waiting_user') LIMIT 1`,
    values: [home === null ? null : toText(home)],
  };
}

function crashesOf(runId: string | null): Statement {
  return {
    name: 'crashes-of',
    text: 'SELECT cardinality(crashed_by) AS crashes FROM parley.runs WHERE run_id = $1',
    values: [runId],
  };
}

function newRecord({ run_id, request_id, spec, created_at, journal }: NewRun, crashes: number): RunRecord {
  return {
    run_id,
    request_id,
    // In the form in which the database returns it: without undefined members.
    spec: JSON.parse(JSON.stringify(spec)) as RunRecord['spec'],
    status: 'queued',
    attempt_number: 1,
    epoch: 0,
    error: null,
    result: null,
    cancel_requested: null,
    waited_ms: 0,
    crashes,
    created_at,
    updated_at: created_at,
    heads: extendHeads(EMPTY_JOURNAL, journal),
  };
}

// Where the files of a run are: with those of the run that it needs, or on the creating host if they exist already, or
// on the host that starts it first.
function whereFiles({ beside, local = false }: NewRun, { site, place }: Site, param: Param): string {
  if (beside === undefined) return `${param(local ? site : null, 'text')}, ${param(place, 'text')}`;
  const other = param(beside, 'text');
  return (
    `(SELECT site FROM parley.runs WHERE run_id = ${other}), COALESCE((SELECT place FROM parley.runs WHERE ` +
    `run_id = ${other}), ${param(place, 'text')})`
  );
}

// Inserts the run with all its rows, in a transaction that holds LOCK_RUNS.
export function insertStatement(run: NewRun, site: Site, hint: string): Statement {
  const heads = extendHeads(EMPTY_JOURNAL, run.journal);
  const { spec, run_id: runId } = run;
  const requestId = toText(run.request_id);
  const all = new Composition('create:').add(run.beside === undefined ? 'u' : 'c', (param) => {
    const at = param(run.created_at, 'bigint');
    return `INSERT INTO parley.runs (run_id, request_id, request_digest, engine, spec_json, cwd, home, continues,
      status, site, place, waited_ms, attempt_number, epoch, created_at, updated_at, queued_at, rasp_seq, fcmp_seq, ts,
      digest, last_commit, crashed_by)
      VALUES (${param(runId, 'text')}, ${param(requestId, 'text')}, ${param(run.request_digest, 'text')},
        ${param(spec.engine, 'text')}, ${param(JSON.stringify(spec), 'text')},
        ${param(toText(spec.cwd), 'text')}, ${param(spec.home === null ? null : toText(spec.home), 'text')},
          ${param(spec.continue_from !== undefined, 'boolean')}, 'queued',
        ${whereFiles(run, site, param)}, 0, 1, 0, ${at}, ${at}, ${at},
        ${param(heads.rasp_seq, 'bigint')}, ${param(heads.fcmp_seq, 'bigint')}, ${param(heads.ts, 'bigint')},
          ${param(heads.digest, 'text')}, ${param(randomUUID(), 'uuid')},
        COALESCE((SELECT crashed_by FROM parley.runs WHERE run_id = ${param(run.crashes_of ?? null, 'text')}), '{}'))`;
  });
  addSegments(all, runId, 0, run.journal);
  all.add(
    'i',
    (param) => `INSERT INTO parley.request_interactive_runtime (request_id, effective_session_timeout_sec,
      session_handle_json, updated_at)
    VALUES (${param(requestId, 'text')}, ${param(run.session_timeout_sec, 'double precision')},
      ${param(run.handle === null ? null : JSON.stringify(run.handle), 'text')},
      ${param(toTimestamp(run.created_at), 'text')})
    ON CONFLICT (request_id) DO UPDATE SET effective_session_timeout_sec = excluded.effective_session_timeout_sec,
      session_handle_json = excluded.session_handle_json, updated_at = excluded.updated_at`,
  );
  const pairs = Object.entries(spec.labels).map(([key, value]) => pairKey(key, value));
  if (pairs.length > 0)
    all.add(
      'l',
      (param) =>
        `INSERT INTO parley.run_labels (run_id, pair) SELECT ${param(runId, 'text')}, pair
          FROM unnest(${param(pairs, 'text[]')}) AS each (pair)`,
    );
  return all.notifying(hint);
}

export interface Deletion {
  readonly runId: string;
  readonly hint: string;
  // Ignores its state, unless a live host is working on it.
  readonly damaged: boolean;
  readonly trace: AuditTrace;
}

export async function deleteRun(db: Database, deletion: Deletion): Promise<DeleteOutcome> {
  return ifUncertain(
    () => tryDelete(db, deletion),
    async () => {
      const outcome = await tryDelete(db, deletion);
      // The run was deleted by the attempt whose result was lost.
      return outcome === 'unknown_run' ? 'deleted' : outcome;
    },
  );
}

interface Deletable {
  readonly request_id: string;
  readonly status: RunState;
  readonly continues: boolean;
  // Another run has its home.
  readonly shared: boolean;
  // Another run is working in its folder.
  readonly worked_in: boolean;
  // A live host runs it, or has a process that waits for its answer.
  readonly in_use: boolean;
  // The end of its journal.
  readonly rasp_seq: number;
  readonly digest: string;
}

function tryDelete(db: Database, { runId, hint, damaged, trace }: Deletion): Promise<DeleteOutcome> {
  // Runs that continue it use its home and its session.
  const look = {
    name: 'deletable',
    values: [runId],
    text: `SELECT request_id, status, continues, rasp_seq, digest,
    EXISTS (SELECT FROM parley.runs AS other WHERE other.home = run.home AND other.run_id <> run.run_id) AS shared,
    (status = 'running' AND ${isAlive('run.owner')}) OR ${isAlive('run.resident')} AS in_use,
    EXISTS (SELECT FROM parley.runs AS other
      WHERE other.cwd = run.cwd AND other.run_id <> run.run_id AND strpos(run.cwd, run.run_id) > 0
      AND other.status IN ('queued', 'running', 'waiting_user')) AS worked_in FROM parley.runs AS run
      WHERE run_id = $1 FOR UPDATE OF run`,
  };
  return db.transact<DeleteOutcome>([LOCK_RUNS, look, LOCK_AUDIT, LAST_AUDIT], (_, runRows, head, last) => {
    const run = runRows?.rows[0] as Deletable | undefined;
    if (!run) return { leave: 'unknown_run' };
    if (!isTerminal(run.status) && (!damaged || run.in_use)) return { leave: 'not_ended' };
    if (run.worked_in || (!run.continues && run.shared)) return { leave: 'session_in_use' };
    const all = new Composition('delete:');
    all
      .add(
        'i',
        (param) => `DELETE FROM parley.request_interactive_runtime WHERE request_id = ${param(run.request_id, 'text')}`,
      )
      // A statement sees the rows from before it, so the row can be deleted in the same statement.
      .add(
        'f',
        (param) =>
          `INSERT INTO parley.leftovers (run_id, site, place) SELECT run_id, site, place FROM parley.runs
            WHERE run_id = ${param(runId, 'text')} ON CONFLICT DO NOTHING`,
      )
      .add('u', (param) => `DELETE FROM parley.runs WHERE run_id = ${param(runId, 'text')}`)
      // Deliveries that have not arrived yet remain.
      .add(
        'g',
        (param) => `DELETE FROM parley.deliveries WHERE state = 'given_up' AND run_id = ${param(runId, 'text')}`,
      );
    const body = tombstoneOf({ run_id: runId, rasp_seq: run.rasp_seq, digest: run.digest });
    const tombstone = auditStatements(head, last, { ...trace, type: 'run.deleted', body });
    return { write: [all.notifying(hint), ...tombstone], answer: 'deleted' };
  });
}
