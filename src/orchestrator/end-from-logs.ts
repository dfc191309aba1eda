// Ends a turn that nobody can end in the ordinary way: its process is gone, and perhaps not everything it printed was stored.
// Its logs are read again, what has no event yet is stored with it, and what the output shows is not lost: a question, a session.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { buildHandle, createTurnParser, findEngine } from '../engines/registry.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import { draft, ORCHESTRATOR, type ByteRange, type RaspDraft } from '../rasp/draft.js';
import type { RaspEvent } from '../rasp/event.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import { withUnanswered, type RunError } from '../run/judge-completion.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { Actor, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied } from './apply-run-event.js';
import type { OrchestratorDeps } from './deps.js';
import { summariseParser } from './parser-summary.js';
import { runFolder } from './run-folder.js';
import { RunJournal } from './run-journal.js';

const PAGE = 500;

export type Ending =
  | { readonly event: 'restart.reconcile_failed' | 'turn.failed'; readonly error: RunError }
  | { readonly event: 'run.canceled'; readonly actor: Actor | undefined };

export async function endFromLogs(deps: OrchestratorDeps, run: RunRecord, ending: Ending): Promise<Applied> {
  const { reports, fold } = await readStored(deps, run);
  const journal = new RunJournal({ runId: run.run_id, engine: run.spec.engine, attempt: run.attempt_number }, run.heads, deps.clock, fold);
  const reason = 'error' in ending ? ending.error.code : 'CANCELED_BY_USER';
  const { before, evidence } = readTails(deps, run, reports, reason);
  return applyRunEvent(deps, run, {
    event: ending.event,
    facts: NO_FACTS,
    ...('error' in ending ? { error: withUnanswered(ending.error, evidence.questions) } : { actor: ending.actor }),
    before,
    handle: await findHandle(deps, run, evidence),
  }, journal);
}

// The session of a first turn, if it is there, so that the run can be tried again from it.
async function findHandle(deps: OrchestratorDeps, run: RunRecord, { sessionId }: TurnEvidence): Promise<EngineSessionHandle | undefined> {
  if (sessionId === null || (await deps.store.loadHandle(run.request_id))) return undefined;
  const handle = buildHandle(findEngine(run.spec.engine), sessionId, { cwd: run.spec.cwd, home: run.spec.home, attempt: run.attempt_number });
  return (await deps.host.hasSession(handle)) ? handle : undefined;
}

// The logs are read from the start, and what is stored already is left out.
function readTails(deps: OrchestratorDeps, run: RunRecord, stored: Map<string, number>, reason: string): { before: RaspDraft[]; evidence: TurnEvidence } {
  const { logs } = runFolder(deps.dataDir, run.run_id).attempt(run.attempt_number);
  const bytes = { stdout: readLog(logs.stdout), stderr: readLog(logs.stderr) };
  const parser = createTurnParser(findEngine(run.spec.engine));
  const drafts = [...parser.push('stdout', bytes.stdout), ...parser.push('stderr', bytes.stderr), ...parser.finish()];
  const ended = draft('lifecycle.turn.ended', {
    exit: { code: null, signal: null },
    completion: { result: 'interrupted', reason_code: reason },
    streams: { stdout: factsOf(bytes.stdout), stderr: factsOf(bytes.stderr) },
    parser: summariseParser(parser.counts()),
    digest: run.heads.digest,
  });
  return { before: [...drafts.filter(({ type, range, data }) => !takeOne(stored, reportKey(type, range, data))), ended], evidence: parser.evidence() };
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
