// What a start finds of the time before: runs that wait stay answerable, runs that were cut off are ended with their code.
// What a dead engine printed and nobody recorded is read from its logs first.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createTurnParser, findEngine } from '../engines/registry.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import { endLeftovers } from '../process/end-leftovers.js';
import { draft, ORCHESTRATOR, type ByteRange, type RaspDraft } from '../rasp/draft.js';
import type { RaspEvent } from '../rasp/event.js';
import { NO_FACTS } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent, type RunTransition } from './apply-run-event.js';
import type { OrchestratorDeps } from './deps.js';
import { summariseParser } from './parser-summary.js';
import { runFolder } from './run-folder.js';
import { RunJournal } from './run-journal.js';

export interface RecoverySettings {
  // Queued runs have not begun: they may fail, as the requirement says, or stay queued.
  readonly queued: 'fail' | 'requeue';
}

const GRACE_MS = 2000;
const PAGE = 500;
const INTERRUPTED: RunError = { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', message: 'Parley stopped while the run was queued or running.' };

export async function recover(deps: OrchestratorDeps, settings: RecoverySettings): Promise<void> {
  const running = await listAll(deps, 'running');
  // Their engines may still be alive; nothing of them may work on.
  const marks = new Set(running.map((run) => `${run.run_id}/${run.attempt_number}`));
  await endLeftovers((mark) => marks.has(mark), { graceMs: GRACE_MS, timers: deps.timers });
  for (const run of running) await recoverRunning(deps, run);
  if (settings.queued === 'fail') for (const run of await listAll(deps, 'queued')) await applyRunEvent(deps, run, { event: 'restart.reconcile_failed', facts: NO_FACTS, error: INTERRUPTED });
}

// Waiting runs are answerable from the first moment, so they are looked at beside other work: there may be thousands.
// An answer that comes first wins; then there is nothing left to preserve.
export async function recoverWaitingRuns(deps: OrchestratorDeps, stopped: () => boolean): Promise<void> {
  for (const run of await listAll(deps, 'waiting_user')) {
    if (stopped()) return;
    await recoverWaiting(deps, run);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function recoverRunning(deps: OrchestratorDeps, run: RunRecord): Promise<void> {
  const { reports, fold } = await readStored(deps, run);
  const journal = new RunJournal({ runId: run.run_id, engine: run.spec.engine, attempt: run.attempt_number }, run.heads, deps.clock, fold);
  await applyRunEvent(deps, run, { event: 'restart.reconcile_failed', facts: NO_FACTS, error: INTERRUPTED, before: readTails(deps, run, reports) }, journal);
}

async function recoverWaiting(deps: OrchestratorDeps, run: RunRecord): Promise<void> {
  const pending = await deps.store.loadPending(run.run_id);
  const handle = await deps.store.loadHandle(run.request_id);
  const facts = { ...NO_FACTS, pending: pending !== null, handle: handle !== null && (await deps.host.hasSession(handle)) };
  if (facts.pending && facts.handle) {
    await applyRunEvent(deps, run, { event: 'restart.preserve_waiting', facts });
    return;
  }
  const resolution = { at: deps.clock.now(), response: null, actor: null, idempotency_key: null, finish: false };
  const transition: RunTransition = {
    event: 'restart.reconcile_failed',
    facts,
    error: { code: 'SESSION_RESUME_FAILED', message: 'After a restart the question or the session of the run was not there any more.', ...(pending ? { details: { unanswered: pending.question } } : {}) },
    ...(pending ? { resolve: { interaction_id: pending.interaction_id, state: 'abandoned' as const, resolution } } : {}),
  };
  await applyRunEvent(deps, run, transition);
}

// The events of a cut-off turn that were not stored: the logs are read again from the start, and what is stored is left out.
function readTails(deps: OrchestratorDeps, run: RunRecord, stored: Map<string, number>): RaspDraft[] {
  const { logs } = runFolder(deps.dataDir, run.run_id).attempt(run.attempt_number);
  const bytes = { stdout: readLog(logs.stdout), stderr: readLog(logs.stderr) };
  const parser = createTurnParser(findEngine(run.spec.engine));
  const drafts = [...parser.push('stdout', bytes.stdout), ...parser.push('stderr', bytes.stderr), ...parser.finish()];
  return [
    ...drafts.filter(({ type, range, data }) => !takeOne(stored, reportKey(type, range, data))),
    draft('lifecycle.turn.ended', {
      exit: { code: null, signal: null },
      completion: { result: 'interrupted', reason_code: INTERRUPTED.code },
      streams: { stdout: factsOf(bytes.stdout), stderr: factsOf(bytes.stderr) },
      parser: summariseParser(parser.counts()),
    }),
  ];
}

// What the journal holds: the fold as it was when the turn was cut off, and how often the parser reported what of this turn.
async function readStored(deps: OrchestratorDeps, run: RunRecord): Promise<{ fold: ConversationFold; reports: Map<string, number> }> {
  const fold = new ConversationFold(run.run_id);
  const reports = new Map<string, number>();
  for (let fromSeq = 1; fromSeq <= run.heads.rasp_seq; fromSeq += PAGE) {
    for (const line of await deps.store.readJournal(run.run_id, 'rasp', { fromSeq, toSeq: fromSeq + PAGE - 1, limit: PAGE })) {
      const event = JSON.parse(line) as RaspEvent;
      const input = foldInputOf(event);
      fold.push(input);
      if (event.attempt_number !== run.attempt_number || event.source.parser === ORCHESTRATOR) continue;
      const key = reportKey(input.type, input.range, event.data);
      reports.set(key, (reports.get(key) ?? 0) + 1);
    }
  }
  return { fold, reports };
}

// The place tells an event of the output; one without a place is told by what it says.
function reportKey(type: string, range: ByteRange | null, data: unknown): string {
  return range ? `${type} ${range.stream} ${range.from} ${range.to}` : `${type} ${JSON.stringify(data)}`;
}

function takeOne(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  counts.set(key, count - 1);
  return count > 0;
}

function readLog(path: string): Buffer {
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}

function factsOf(bytes: Buffer): { bytes: number; sha256: string } {
  return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

async function listAll(deps: OrchestratorDeps, status: RunRecord['status']): Promise<RunRecord[]> {
  const found: RunRecord[] = [];
  for (;;) {
    const before = found.at(-1)?.run_id;
    const page = await deps.store.listRuns({ status, limit: PAGE, ...(before === undefined ? {} : { before }) });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}
