// One append as one transaction. An append of lines alone takes one round trip, any other takes two: lock and compare,
// then write and commit. If the connection breaks before the result arrives, this file finds out whether it was stored.
import { randomUUID } from 'node:crypto';
import { toTimestamp } from '../../kernel/clock.js';
import type { RunState } from '../../run/statechart.js';
import { FIRST_DIGEST, nextDigest } from '../digest.js';
import { checkFlush, extendHeads } from '../extend-heads.js';
import { rowsOf, type RowChanges } from '../row-changes.js';
import type { AppendOutcome, JournalFlush, JournalHeads, RunAppend } from '../store.js';
import { addSegments, flushStatement, isLinesOnly } from './append-journal.js';
import { Composition } from './connection/compose.js';
import { insertStatement, known, LOCK_RUNS } from './create-run.js';
import type { Database, Decision, Reader, Statement } from './connection/database.js';
import { addDeliveries } from './deliveries.js';
import { leasesStatement, mayWrite, needsLeases, ownerAfter, readLeases } from './hosts/fence.js';
import { ifUncertain } from './connection/if-uncertain.js';
import { addAsk, resolveStatement } from './interactions.js';
import { readSegments } from './read-journal.js';
import type { Site } from './hosts/site.js';
import { addTurn } from './turn-counts.js';

interface LockedRow extends JournalHeads {
  readonly request_id: string;
  readonly engine: string;
  readonly status: RunState;
  readonly epoch: number;
  readonly owner: string | null;
  readonly last_commit: string;
  readonly cancel_requested_json: string | null;
}

interface Attempt {
  readonly append: RunAppend;
  // Stored with the run, so that a later check recognises this commit.
  readonly id: string;
  readonly hint: string;
  // The result of an earlier attempt was lost.
  readonly again: boolean;
}

type Outcome = AppendOutcome & { readonly created?: boolean };

const LOCK =
  'SELECT request_id, engine, status, epoch, owner, last_commit, cancel_requested_json, rasp_seq, fcmp_seq, ts, ' +
  'digest FROM parley.runs WHERE run_id = $1 FOR UPDATE';

export interface Writer {
  readonly host: string | null;
  readonly site: Site;
  // The notification for other hosts of a run that is created with the append.
  readonly createHint: string;
}

// `created` of the outcome: the run of `append.create` was created with it.
export async function appendToRun(db: Database, writer: Writer, append: RunAppend, hint: string): Promise<Outcome> {
  const { host } = writer;
  if (append.lines) checkFlush(append.lines);
  const id = randomUUID();
  const attempt = async (): Promise<Outcome> => {
    if (isLinesOnly(append)) {
      const [heads] = await db.write<JournalHeads>(flushStatement(append, id, host, hint));
      if (heads) return { committed: true, heads: toHeads(heads) };
    }
    return appendCarefully(db, writer, { append, id, hint, again: false });
  };
  return ifUncertain(attempt, () => appendCarefully(db, writer, { append, id, hint, again: true }));
}

// Our append was stored, and others have appended since.
interface Overtaken {
  readonly overtaken: JournalHeads;
}

// Repeating an append cannot store it twice: the first one has moved the head, or will find it moved.
async function appendCarefully(
  db: Database,
  { host, site, createHint }: Writer,
  { append, id, hint, again }: Attempt,
): Promise<Outcome> {
  const { run_id: runId, expect, before, after, lines, create } = append;
  const rows = rowsOf(before, after);
  const resolved = rows?.resolved ?? null;
  const fenced = needsLeases(host, append);
  // Runs are created and deleted under this lock, which is taken before the lock of a run.
  const look: Statement[] = create ? [LOCK_RUNS, known(create.request_id)] : [];
  look.push({ name: 'lock-run', text: LOCK, values: [runId] });
  if (fenced) look.push(leasesStatement(host, append));
  if (again && lines) look.push(ownSegment(runId, lines));
  // Attempted before the comparison; rolled back with the rest if the append is refused.
  if (resolved) look.push(resolveStatement(runId, resolved));
  const outcome = await db.transact<Outcome | Overtaken>(look, (...all): Decision<Outcome | Overtaken> => {
    const [, knownRows] = create ? all : [];
    const [locked, ...answers] = create ? all.slice(2) : all;
    const run = locked?.rows[0] as LockedRow | undefined;
    const leases = fenced ? answers.shift() : undefined;
    const own = again && lines ? answers.shift() : undefined;
    if (!run) return refuse('unknown_run');
    if (run.last_commit === id) return { leave: { committed: true, heads: toHeads(run) } };
    if (own?.rowCount === 1) return { leave: { overtaken: toHeads(run) } };
    if (run.epoch !== expect.epoch) return refuse('epoch');
    if (run.status !== before.status) return refuse('status');
    if (run.rasp_seq !== expect.rasp_seq) return refuse('seq');
    const valid = readLeases((leases?.rows ?? []) as { host_id: string; valid: boolean }[], host, run.owner);
    if (!mayWrite({ host, owner: run.owner }, append, valid)) return refuse('epoch');
    if (resolved && answers[0]?.rowCount !== 1) return refuse('interaction');
    const heads = lines ? extendHeads(toHeads(run), lines) : toHeads(run);
    const owner = ownerAfter(host, run.owner, append);
    const changed = compose(append, { run, rows, heads, owner, site: site.site, id, hint });
    const isCreated = create !== undefined && run.cancel_requested_json === null && knownRows?.rowCount === 0;
    return {
      write: create && isCreated ? [changed, insertStatement(create, site, createHint)] : [changed],
      answer: { committed: true, heads, ...(isCreated ? { created: true } : {}) },
    };
  });
  return 'overtaken' in outcome ? { committed: true, heads: await headsAfter(db, append, outcome.overtaken) } : outcome;
}

function refuse(reason: Extract<AppendOutcome, { committed: false }>['reason']): { leave: AppendOutcome } {
  return { leave: { committed: false, reason } };
}

interface Composed {
  // The row as it was locked.
  readonly run: LockedRow;
  readonly rows: RowChanges | null;
  readonly heads: JournalHeads;
  readonly owner: string | null;
  // The claim of the host that starts the run, or ends it before its start.
  readonly site: string | null;
  readonly id: string;
  readonly hint: string;
}

function compose(
  { run_id: runId, now, epoch, lines, deliveries = [] }: RunAppend,
  { run, rows, heads, owner, site, id, hint }: Composed,
): Statement {
  const { run: set, handle, asked, turn } = rows ?? { run: {}, handle: null, asked: null, turn: null };
  const all = new Composition('change:').add('u', (param) => {
    const status = param(set.status ?? run.status, 'text');
    return `UPDATE parley.runs
      SET status = ${status},
      attempt_number = COALESCE(${param(set.attempt_number ?? null, 'integer')}, attempt_number),
      epoch = ${param(epoch ?? run.epoch, 'bigint')}, owner = ${param(owner, 'text')},
        site = CASE WHEN ${status} IN ('queued', 'waiting_user') THEN site ELSE COALESCE(site,
        ${param(site, 'text')}) END,
      resident = CASE WHEN ${status} IN ('queued', 'waiting_user') THEN resident END, reserved_by = NULL,
        reserved_until = NULL,
      waited_ms = COALESCE(${param(set.waited_ms ?? null, 'bigint')}, waited_ms),
      error_json = COALESCE(${param(json(set.error), 'text')}, error_json),
      result_json = COALESCE(${param(json(set.result), 'text')}, result_json),
        cancel_requested_json = COALESCE(${param(json(set.cancel_requested), 'text')}, cancel_requested_json),
      updated_at = ${param(now, 'bigint')}, queued_at = CASE WHEN ${status} = 'queued'
        AND status <> 'queued' THEN ${param(now, 'bigint')} ELSE queued_at END,
      rasp_seq = ${param(heads.rasp_seq, 'bigint')}, fcmp_seq = ${param(heads.fcmp_seq, 'bigint')},
        ts = ${param(heads.ts, 'bigint')}, digest = ${param(heads.digest, 'text')},
      at_work = COALESCE(${param(set.status === undefined ? null : set.status === 'running', 'boolean')}, at_work),
        crashed_by = CASE WHEN ${status} = 'waiting_user' THEN '{}' ELSE crashed_by END,
      last_commit = ${param(id, 'uuid')} WHERE run_id = ${param(runId, 'text')}`;
  });
  if (lines) addSegments(all, runId, epoch ?? run.epoch, lines);
  if (handle)
    all.add(
      'h',
      (param) =>
        `UPDATE parley.request_interactive_runtime
          SET session_handle_json = ${param(JSON.stringify(handle), 'text')},
            updated_at = ${param(toTimestamp(now), 'text')} WHERE request_id = ${param(run.request_id, 'text')}`,
    );
  if (asked) addAsk(all, asked, { runId, engine: run.engine });
  if (turn) addTurn(all, turn, { runId, engine: run.engine });
  if (deliveries.length > 0) addDeliveries(all, deliveries, { runId, heads, now });
  return all.notifying(hint);
}

// Reads the place where the lines of this append would be stored.
function ownSegment(runId: string, { rasp: { firstSeq, lastSeq, bytes } }: JournalFlush): Statement {
  return {
    name: 'own-segment',
    text: `SELECT FROM parley.segments
      WHERE run_id = $1 AND protocol = 'rasp' AND seq_from = $2::bigint AND seq_to = $3::bigint AND body = $4::bytea`,
    values: [runId, firstSeq, lastSeq, bytes],
  };
}

async function headsAfter(db: Database, { run_id: runId, lines }: RunAppend, now: JournalHeads): Promise<JournalHeads> {
  if (!lines || lines.rasp.lastSeq === now.rasp_seq) return now;
  return {
    rasp_seq: lines.rasp.lastSeq,
    fcmp_seq: lines.fcmp?.lastSeq ?? now.fcmp_seq,
    ts: lines.lastTs,
    digest: await digestUpTo(db, runId, lines.rasp.lastSeq),
  };
}

export async function digestUpTo(db: Reader, runId: string, toSeq: number): Promise<string> {
  let digest = FIRST_DIGEST;
  for await (const { body } of readSegments(db, runId, 'rasp', { fromSeq: 1, toSeq }))
    digest = nextDigest(digest, body);
  return digest;
}

// Absent columns keep their values.
function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function toHeads({ rasp_seq, fcmp_seq, ts, digest }: JournalHeads): JournalHeads {
  return { rasp_seq, fcmp_seq, ts, digest };
}
