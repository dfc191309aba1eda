// One change of a run as one transaction. A change that is only a flush takes one round trip, any other takes two: lock
// and look, then write and commit. If the connection breaks before the answer, what became of the change is found out
// here.
import { randomUUID } from 'node:crypto';
import { toTimestamp } from '../../kernel/clock.js';
import type { RunState } from '../../run/statechart.js';
import { FIRST_DIGEST, nextDigest } from '../digest.js';
import { checkFlush, extendHeads } from '../extend-heads.js';
import type { CommitOutcome, JournalFlush, JournalHeads, RunChange } from '../store.js';
import { addSegments, flushStatement, isFlushOnly } from './append-journal.js';
import { Composition } from './connection/compose.js';
import { insertStatement, known, LOCK_RUNS } from './create-run.js';
import type { Database, Decision, Reader, Statement } from './connection/database.js';
import { addDeliveries } from './deliveries.js';
import { isOnlyWish, leasesStatement, mayWrite, needsLeases, ownerAfter, readLeases } from './hosts/fence.js';
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
  readonly change: RunChange;
  // By it the commit is known again.
  readonly id: string;
  readonly hint: string;
  // The answer to an earlier attempt was lost.
  readonly again: boolean;
}

const LOCK =
  'SELECT request_id, engine, status, epoch, owner, last_commit, cancel_requested_json, rasp_seq, fcmp_seq, ts, ' +
  'digest FROM parley.runs WHERE run_id = $1 FOR UPDATE';

export interface Writer {
  readonly host: string | null;
  readonly site: Site;
  // What other hosts are told of a run that is created with the change.
  readonly createHint: string;
}

// `created` of the outcome: the run of `change.create` was created with it.
export async function commitRun(
  db: Database,
  writer: Writer,
  change: RunChange,
  hint: string,
): Promise<CommitOutcome & { readonly created?: boolean }> {
  const { host } = writer;
  if (change.journal) checkFlush(change.journal);
  // By it the commit is known again.
  const id = randomUUID();
  const attempt = async (): Promise<CommitOutcome & { readonly created?: boolean }> => {
    if (isFlushOnly(change)) {
      const [heads] = await db.write<JournalHeads>(flushStatement(change, id, host, hint));
      if (heads) return { committed: true, heads: toHeads(heads) };
    }
    return commitCarefully(db, writer, { change, id, hint, again: false });
  };
  return ifUncertain(attempt, () => commitCarefully(db, writer, { change, id, hint, again: true }));
}

// Ours, although others have gone on since.
interface Overtaken {
  readonly overtaken: JournalHeads;
}

// What is sent again cannot be stored twice: the first one moved the head, or will find it moved.
async function commitCarefully(
  db: Database,
  { host, site, createHint }: Writer,
  { change, id, hint, again }: Attempt,
): Promise<CommitOutcome & { readonly created?: boolean }> {
  const { run_id: runId, expect, resolve, journal, create } = change;
  const fenced = needsLeases(host, change);
  // Runs come and go under this lock, which is taken before that of a run.
  const look: Statement[] = create ? [LOCK_RUNS, known(create.request_id)] : [];
  look.push({ name: 'lock-run', text: LOCK, values: [runId] });
  if (fenced) look.push(leasesStatement(host, change));
  if (again && journal) look.push(ownSegment(runId, journal));
  // Tried before anything is compared; it is undone with the rest if the change is refused.
  if (resolve) look.push(resolveStatement(runId, resolve));
  const outcome = await db.transact<(CommitOutcome & { readonly created?: boolean }) | Overtaken>(
    look,
    (...all): Decision<(CommitOutcome & { readonly created?: boolean }) | Overtaken> => {
      const [, knownRows] = create ? all : [];
      const [locked, ...answers] = create ? all.slice(2) : all;
      const run = locked?.rows[0] as LockedRow | undefined;
      const leases = fenced ? answers.shift() : undefined;
      const own = again && journal ? answers.shift() : undefined;
      if (!run) return refuse('unknown_run');
      if (run.last_commit === id) return { leave: { committed: true, heads: toHeads(run) } };
      if (own?.rowCount === 1) return { leave: { overtaken: toHeads(run) } };
      if (run.epoch !== expect.epoch) return refuse('epoch');
      if (run.status !== expect.status) return refuse('status');
      // A wish holds whatever was printed since: against a turn that prints all the time it would never be the first.
      if (run.rasp_seq !== expect.rasp_seq && !isOnlyWish(change)) return refuse('seq');
      if (
        !mayWrite(
          host,
          run.owner,
          change,
          readLeases((leases?.rows ?? []) as { host_id: string; valid: boolean }[], host, run.owner),
        )
      )
        return refuse('epoch');
      const resolved = answers[0]?.rows[0] as { readonly asked_at: number } | undefined;
      if (resolve && !resolved) return refuse('interaction');
      const waitedMs = resolve && resolved ? Math.max(0, resolve.resolution.at - resolved.asked_at) : 0;
      const heads = journal ? extendHeads(toHeads(run), journal) : toHeads(run);
      const changed = compose(
        run,
        change,
        heads,
        { owner: ownerAfter(host, run.owner, change), site: site.site, waitedMs },
        id,
        hint,
      );
      const isCreated = create !== undefined && run.cancel_requested_json === null && knownRows?.rowCount === 0;
      return {
        write: create && isCreated ? [changed, insertStatement(create, site, createHint)] : [changed],
        answer: { committed: true, heads, ...(isCreated ? { created: true } : {}) },
      };
    },
  );
  return 'overtaken' in outcome ? { committed: true, heads: await headsAfter(db, change, outcome.overtaken) } : outcome;
}

function refuse(reason: Extract<CommitOutcome, { committed: false }>['reason']): { leave: CommitOutcome } {
  return { leave: { committed: false, reason } };
}

interface Aftermath {
  readonly owner: string | null;
  // Of whoever begins it, or ends it before it began.
  readonly site: string | null;
  readonly waitedMs: number;
}

function compose(
  run: LockedRow,
  change: RunChange,
  heads: JournalHeads,
  { owner, site, waitedMs }: Aftermath,
  id: string,
  hint: string,
): Statement {
  const { run_id: runId, now, set = {}, journal, turn, handle, ask, deliveries = [] } = change;
  const all = new Composition('change:').add('u', (param) => {
    const status = param(set.status ?? run.status, 'text');
    return `UPDATE parley.runs
      SET status = ${status}, attempt_number = COALESCE(${param(set.attempt_number ?? null, 'integer')},
        attempt_number),
      epoch = ${param(set.epoch ?? run.epoch, 'bigint')}, owner = ${param(owner, 'text')},
        site = CASE WHEN ${status} IN ('queued', 'waiting_user') THEN site ELSE COALESCE(site,
        ${param(site, 'text')}) END,
      resident = CASE WHEN ${status} IN ('queued', 'waiting_user') THEN resident END, reserved_by = NULL,
        reserved_until = NULL,
      waited_ms = waited_ms + ${param(waitedMs, 'bigint')}, error_json = COALESCE(${param(json(set.error), 'text')},
        error_json),
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
  if (journal) addSegments(all, runId, set.epoch ?? run.epoch, journal);
  if (handle)
    all.add(
      'h',
      (param) =>
        `UPDATE parley.request_interactive_runtime
          SET session_handle_json = ${param(JSON.stringify(handle), 'text')},
            updated_at = ${param(toTimestamp(now), 'text')} WHERE request_id = ${param(run.request_id, 'text')}`,
    );
  if (ask) addAsk(all, runId, ask);
  if (turn) addTurn(all, runId, run.engine, turn);
  if (deliveries.length > 0) addDeliveries(all, runId, heads, now, deliveries);
  return all.notifying(hint);
}

// The very lines of this change, where they would be.
function ownSegment(runId: string, { rasp: { firstSeq, lastSeq, bytes } }: JournalFlush): Statement {
  return {
    name: 'own-segment',
    text: `SELECT FROM parley.segments
      WHERE run_id = $1 AND protocol = 'rasp' AND seq_from = $2::bigint AND seq_to = $3::bigint AND body = $4::bytea`,
    values: [runId, firstSeq, lastSeq, bytes],
  };
}

async function headsAfter(
  db: Database,
  { run_id: runId, journal }: RunChange,
  now: JournalHeads,
): Promise<JournalHeads> {
  if (!journal || journal.rasp.lastSeq === now.rasp_seq) return now;
  return {
    rasp_seq: journal.rasp.lastSeq,
    fcmp_seq: journal.fcmp?.lastSeq ?? now.fcmp_seq,
    ts: journal.lastTs,
    digest: await digestUpTo(db, runId, journal.rasp.lastSeq),
  };
}

export async function digestUpTo(db: Reader, runId: string, toSeq: number): Promise<string> {
  let digest = FIRST_DIGEST;
  for await (const { body } of readSegments(db, runId, 'rasp', { fromSeq: 1, toSeq }))
    digest = nextDigest(digest, body);
  return digest;
}

// What is not set stays as it is.
function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function toHeads({ rasp_seq, fcmp_seq, ts, digest }: JournalHeads): JournalHeads {
  return { rasp_seq, fcmp_seq, ts, digest };
}
