// Ends a turn that cannot end in the ordinary way: its process has exited, and some of its output may not be stored.
// Reads its logs again and stores output without events, so that a question or a session in the output is not lost.
import { readAsks } from '../ask/ask-file.js';
import { hearQuestions } from '../ask/witnesses.js';
import type { Engine } from '../engines/engine.js';
import { buildHandle, createTurnParser, findEngine } from '../engines/registry.js';
import { newMemory, type ReaderMemory } from '../engines/turn-parser.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import { asString } from '../kernel/json.js';
import { draft, ORCHESTRATOR, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import { withUnanswered } from '../run/judge-completion.js';
import type { RunError } from '../run/run-error.js';
import { describeSession } from '../run/session-handle.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { Actor, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied, type ApplyDeps } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { everyEvent } from '../journal/every-event.js';
import { summariseParser } from './parser-summary.js';
import { runFolder } from '../journal/run-folder.js';
import { isSessionThere } from './session-there.js';
import { StoredReports } from './stored-reports.js';
import { endsIn, LOG_BEGIN, logsOf, readLog, type LogEnds, type LogPaths } from '../journal/turn-logs.js';
import { TurnWriter } from './turn-writer.js';

export type Ending =
  | { readonly event: 'restart.reconcile_failed' | 'turn.failed'; readonly error: RunError }
  | { readonly event: 'run.canceled'; readonly actor: Actor | undefined };

export type EndDeps = ApplyDeps & Pick<OrchestratorDeps, 'timers' | 'runtime'>;

// `endingOf` is called when all output is stored. If the signal is aborted first, rejects with its reason; the run
// keeps its state.
export async function endFromLogs(
  deps: EndDeps,
  run: RunRecord,
  endingOf: () => Ending,
  signal?: AbortSignal,
): Promise<Applied> {
  const { reports, fold, version, at } = await readStored(deps, run, signal);
  const writer = new TurnWriter(deps, run, () => {}, fold);
  const engine = findEngine(run.spec.engine);
  const folder = runFolder(deps.dataDir, run.run_id);
  const logs = logsOf(engine, folder, run.attempt_number);
  const parser = createTurnParser(engine, version, { at, memory: await remember(engine, logs, { at, signal }) });
  const add = (drafts: readonly RaspDraft[]) => {
    signal?.throwIfAborted();
    return writer.add(drafts.filter((report) => !reports.consume(report)));
  };
  const streams = {
    stdout: await readLog(logs.stdout, at.stdout, (chunk) => add(parser.push('stdout', chunk))),
    stderr: await readLog(logs.stderr, at.stderr, (chunk) => add(parser.push('stderr', chunk))),
  };
  await add(parser.finish());
  await writer.flush();
  const evidence = parser.evidence();
  // The tool may have recorded a question that the engine had no time to print.
  const { questions } = hearQuestions(
    (await readAsks(folder.attempt(run.attempt_number).asks, null)).questions,
    evidence.questions,
  );
  const ending = endingOf();
  const reason = 'error' in ending ? ending.error.code : 'CANCELED_BY_USER';
  return applyRunEvent(
    deps,
    writer.run,
    {
      event: ending.event,
      facts: NO_FACTS,
      ...('error' in ending ? { error: withUnanswered(ending.error, questions) } : { actor: ending.actor }),
      before: [
        ...(await findSession(deps, run, evidence)),
        draft('lifecycle.turn.ended', {
          exit: { code: null, signal: null },
          completion: { result: 'interrupted', reason_code: reason },
          streams,
          parser: summariseParser(parser.counts()),
          digest: writer.run.heads.digest,
        }),
      ],
    },
    writer.journal,
  );
}

// Finds the session of a first turn, if possible, so that a retry can continue it.
async function findSession(
  deps: Pick<EndDeps, 'store' | 'runtime'>,
  run: RunRecord,
  { sessionId }: TurnEvidence,
): Promise<RaspDraft[]> {
  // The session of a run that needs its process ended with it.
  if (sessionId === null || waitPolicyOf(run.spec).needsProcess || (await deps.store.loadHandle(run.request_id)))
    return [];
  const handle = buildHandle(findEngine(run.spec.engine), sessionId, {
    cwd: run.spec.cwd,
    home: run.spec.home,
    attempt: run.attempt_number,
  });
  return (await isSessionThere(deps, handle))
    ? [draft('lifecycle.session.confirmed', { session: describeSession(handle) })]
    : [];
}

interface Stored {
  readonly fold: ConversationFold;
  readonly reports: StoredReports;
  // The offsets in its logs where the turn started.
  readonly at: LogEnds;
  // The engine's version when the turn started.
  readonly version: string | undefined;
}

// Reads from the journal the fold at the time the turn was cut off, and the events of this turn that the parser
// reported.
async function readStored(
  deps: Pick<EndDeps, 'store'>,
  run: RunRecord,
  signal: AbortSignal | undefined,
): Promise<Stored> {
  const fold = new ConversationFold(run.run_id);
  const reports = new StoredReports();
  let version: string | undefined;
  let at = LOG_BEGIN;
  const isResident = findEngine(run.spec.engine).resident !== undefined;
  for await (const event of everyEvent(deps.store, run.run_id)) {
    signal?.throwIfAborted();
    const input = foldInputOf(event);
    fold.push(input);
    if (isResident) at = endsIn(event) ?? at;
    if (event.attempt_number !== run.attempt_number) continue;
    if (event.event.type === 'lifecycle.turn.started') version = asString(event.data.engine_version);
    if (event.source.parser !== ORCHESTRATOR) reports.add(input);
  }
  return { fold, reports, version, at };
}

// Rebuilds the parser's memory of the earlier turns.
async function remember(
  engine: Engine,
  logs: LogPaths,
  { at, signal }: { readonly at: LogEnds; readonly signal: AbortSignal | undefined },
): Promise<ReaderMemory> {
  const memory = newMemory();
  if (!engine.resident || at.stdout === 0) return memory;
  const earlier = createTurnParser(engine, undefined, { memory });
  let left = at.stdout;
  await readLog(logs.stdout, 0, (chunk) => {
    signal?.throwIfAborted();
    earlier.push('stdout', chunk.subarray(0, left));
    left = Math.max(0, left - chunk.length);
  });
  return memory;
}
