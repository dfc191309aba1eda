// Ends a turn that nobody can end in the ordinary way: its process is gone, and perhaps not everything it printed was
// stored. Its logs are read again, what has no event yet is stored with it, and what the output shows is not lost: a
// question, a session.
import { readAsks } from '../ask/ask-file.js';
import { hearQuestions } from '../ask/witnesses.js';
import type { Engine } from '../engines/engine.js';
import { buildHandle, createTurnParser, findEngine } from '../engines/registry.js';
import { newMemory, type ReaderMemory } from '../engines/turn-parser.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import { asString } from '../kernel/json.js';
import { readStoredJson } from '../kernel/stored-json.js';
import { draft, ORCHESTRATOR, type ByteRange, type RaspDraft } from '../rasp/draft.js';
import type { RaspEvent } from '../rasp/event.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import { withUnanswered, type RunError } from '../run/judge-completion.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { Actor, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { summariseParser } from './parser-summary.js';
import { runFolder } from '../journal/run-folder.js';
import { isSessionThere } from './session-there.js';
import { endsIn, LOG_BEGIN, logsOf, readLog, type LogEnds, type LogPaths } from '../journal/turn-logs.js';
import { TurnWriter } from './turn-writer.js';

const PAGE = 500;

export type Ending =
  | { readonly event: 'restart.reconcile_failed' | 'turn.failed'; readonly error: RunError }
  | { readonly event: 'run.canceled'; readonly actor: Actor | undefined };

export async function endFromLogs(deps: OrchestratorDeps, run: RunRecord, ending: Ending): Promise<Applied> {
  const { reports, fold, version, at } = await readStored(deps, run);
  const writer = new TurnWriter(deps, run, () => {}, fold);
  const engine = findEngine(run.spec.engine);
  const folder = runFolder(deps.dataDir, run.run_id);
  const logs = logsOf(engine, folder, run.attempt_number);
  const parser = createTurnParser(engine, version, { at, memory: await remember(engine, logs, at) });
  const add = (drafts: readonly RaspDraft[]) =>
    writer.add(drafts.filter(({ type, range, data }) => !takeOne(reports, reportKey(type, range, data))));
  const streams = {
    stdout: await readLog(logs.stdout, at.stdout, (chunk) => add(parser.push('stdout', chunk))),
    stderr: await readLog(logs.stderr, at.stderr, (chunk) => add(parser.push('stderr', chunk))),
  };
  await add(parser.finish());
  await writer.flush();
  const evidence = parser.evidence();
  // The tool may have taken a question that the engine had no time to print.
  const { questions } = hearQuestions(
    (await readAsks(folder.attempt(run.attempt_number).asks, null)).questions,
    evidence.questions,
  );
  const reason = 'error' in ending ? ending.error.code : 'CANCELED_BY_USER';
  return applyRunEvent(
    deps,
    writer.run,
    {
      event: ending.event,
      facts: NO_FACTS,
      ...('error' in ending ? { error: withUnanswered(ending.error, questions) } : { actor: ending.actor }),
      before: [
        draft('lifecycle.turn.ended', {
          exit: { code: null, signal: null },
          completion: { result: 'interrupted', reason_code: reason },
          streams,
          parser: summariseParser(parser.counts()),
          digest: writer.run.heads.digest,
        }),
      ],
      handle: await findHandle(deps, run, evidence),
    },
    writer.journal,
  );
}

// The session of a first turn, if it is there, so that the run can be tried again from it.
async function findHandle(
  deps: OrchestratorDeps,
  run: RunRecord,
  { sessionId }: TurnEvidence,
): Promise<EngineSessionHandle | undefined> {
  if (sessionId === null || (await deps.store.loadHandle(run.request_id))) return undefined;
  const handle = buildHandle(findEngine(run.spec.engine), sessionId, {
    cwd: run.spec.cwd,
    home: run.spec.home,
    attempt: run.attempt_number,
  });
  return (await isSessionThere(deps, handle)) ? handle : undefined;
}

interface Stored {
  readonly fold: ConversationFold;
  readonly reports: Map<string, number>;
  // Where in its logs the turn began.
  readonly at: LogEnds;
  // Of the engine, as the turn began.
  readonly version: string | undefined;
}

// What the journal holds: the fold as it was when the turn was cut off, and how often the parser reported what of this
// turn.
async function readStored(deps: OrchestratorDeps, run: RunRecord): Promise<Stored> {
  const fold = new ConversationFold(run.run_id);
  const reports = new Map<string, number>();
  let version: string | undefined;
  let at = LOG_BEGIN;
  const isResident = findEngine(run.spec.engine).resident !== undefined;
  for (let fromSeq = 1; fromSeq <= run.heads.rasp_seq; fromSeq += PAGE) {
    for (const line of await deps.store.readJournal(run.run_id, 'rasp', {
      fromSeq,
      toSeq: fromSeq + PAGE - 1,
      limit: PAGE,
    })) {
      const event = readStoredJson(line) as RaspEvent;
      const input = foldInputOf(event);
      fold.push(input);
      if (isResident) at = endsIn(event) ?? at;
      if (event.attempt_number !== run.attempt_number) continue;
      if (event.event.type === 'lifecycle.turn.started') version = asString(event.data.engine_version);
      if (event.source.parser === ORCHESTRATOR) continue;
      const key = reportKey(input.type, input.range, event.data);
      reports.set(key, (reports.get(key) ?? 0) + 1);
    }
  }
  return { fold, reports, version, at };
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

// What the turns before have left for the parser of this one.
async function remember(engine: Engine, logs: LogPaths, at: LogEnds): Promise<ReaderMemory> {
  const memory = newMemory();
  if (!engine.resident || at.stdout === 0) return memory;
  const earlier = createTurnParser(engine, undefined, { memory });
  let left = at.stdout;
  await readLog(logs.stdout, 0, (chunk) => {
    earlier.push('stdout', chunk.subarray(0, left));
    left = Math.max(0, left - chunk.length);
  });
  return memory;
}
