// Ends a turn that cannot end in the ordinary way: its process has exited, and some of its output may not be stored.
// Reads its logs again and stores output without events, so that a question or a session in the output is not lost.
import { readAsks } from '../ask/ask-file.js';
import { hearQuestions } from '../ask/witnesses.js';
import type { Engine } from '../engines/engine.js';
import { buildHandle, createTurnParser, findEngine } from '../engines/registry.js';
import { newMemory, type ReaderMemory } from '../engines/turn-parser.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import { asString } from '../kernel/json.js';
import { draft, ORCHESTRATOR, type ByteRange, type RaspDraft } from '../rasp/draft.js';
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
import { endsIn, LOG_BEGIN, logsOf, readLog, type LogEnds, type LogPaths } from '../journal/turn-logs.js';
import { TurnWriter } from './turn-writer.js';

export type Ending =
  | { readonly event: 'restart.reconcile_failed' | 'turn.failed'; readonly error: RunError }
  | { readonly event: 'run.canceled'; readonly actor: Actor | undefined };

export type EndDeps = ApplyDeps & Pick<OrchestratorDeps, 'timers' | 'runtime'>;

export async function endFromLogs(deps: EndDeps, run: RunRecord, ending: Ending): Promise<Applied> {
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
  // The tool may have recorded a question that the engine had no time to print.
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
  readonly reports: Map<string, number>;
  // The offsets in its logs where the turn started.
  readonly at: LogEnds;
  // The engine's version when the turn started.
  readonly version: string | undefined;
}

// Reads from the journal the fold at the time the turn was cut off, and how often the parser reported each event of
// this turn.
async function readStored(deps: Pick<EndDeps, 'store'>, run: RunRecord): Promise<Stored> {
  const fold = new ConversationFold(run.run_id);
  const reports = new Map<string, number>();
  let version: string | undefined;
  let at = LOG_BEGIN;
  const isResident = findEngine(run.spec.engine).resident !== undefined;
  for await (const event of everyEvent(deps.store, run.run_id)) {
    const input = foldInputOf(event);
    fold.push(input);
    if (isResident) at = endsIn(event) ?? at;
    if (event.attempt_number !== run.attempt_number) continue;
    if (event.event.type === 'lifecycle.turn.started') version = asString(event.data.engine_version);
    if (event.source.parser === ORCHESTRATOR) continue;
    const key = reportKey(input.type, input.range, event.data);
    reports.set(key, (reports.get(key) ?? 0) + 1);
  }
  return { fold, reports, version, at };
}

// An event of the output is identified by its byte range; an event without a range by its data.
function reportKey(type: string, range: ByteRange | null, data: unknown): string {
  return range ? `${type} ${range.stream} ${range.from} ${range.to}` : `${type} ${JSON.stringify(data)}`;
}

function takeOne(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  counts.set(key, count - 1);
  return count > 0;
}

// Rebuilds the parser's memory of the earlier turns.
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
