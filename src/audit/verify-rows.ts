// Whether the rows beside a run's journal say what its events say: what was asked of it, its questions with their
// answers, its session, its counts. They are what Parley goes on with, so nothing may stand in them that never
// happened.
import { addUpTurns } from '../store/add-up-turns.js';
import type { InteractionRecord, RunRecord, SegmentRange, Store } from '../store/store.js';
import { canonicalText, parseJson } from '../kernel/json.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import { isTerminal } from '../run/statechart.js';

type Found = Pick<Store, 'listInteractions' | 'listSegments' | 'loadHandle' | 'loadRun' | 'readJournal' | 'sumTurns'>;

// What is wrong, or null; and how many questions were compared.
export async function explainRows(
  store: Found,
  run: RunRecord,
  rasp: readonly RaspEvent[],
  fcmpLines: readonly string[],
): Promise<{ readonly problem: string | null; readonly questions: number }> {
  const questions = await store.listInteractions(run.run_id);
  const fcmp = fcmpLines.map((line) => parseJson(line) as { ts?: string } | undefined);
  const problem =
    explainRun(run, rasp) ??
    (await explainFork(store, run)) ??
    explainQuestions(run, questions, rasp) ??
    (await explainSession(store, run, rasp)) ??
    (await explainCounts(store, run, rasp)) ??
    explainPieces('rasp', await store.listSegments(run.run_id, 'rasp'), rasp) ??
    explainPieces('fcmp', await store.listSegments(run.run_id, 'fcmp'), fcmp);
  return { problem, questions: questions.length };
}

function dataOf<T extends keyof RaspData>(rasp: readonly RaspEvent[], type: T): RaspData[T][] {
  return rasp.filter(({ event }) => event.type === type).map(({ data }) => data as unknown as RaspData[T]);
}

function differ(a: unknown, b: unknown): boolean {
  return canonicalText(a ?? null) !== canonicalText(b ?? null);
}

function explainRun(run: RunRecord, rasp: readonly RaspEvent[]): string | null {
  const [created] = dataOf(rasp, 'lifecycle.run.created');
  if (!created) return 'no event tells how the run was created';
  const {
    request_id: requestId,
    actor: _actor,
    interactive_profile: profile,
    ...told
  } = created as typeof created & { interactive_profile?: { kind: string } };
  const { home: _home, sticky, fork_from: fork, ...spec } = run.spec;
  if (differ({ ...spec, fork_from: fork?.run_id }, told))
    return 'what the run was asked to do is not what its first event says';
  if (sticky !== undefined && (profile?.kind === 'sticky_process') !== sticky)
    return 'how the run waits is not what its first event says';
  if (requestId !== run.request_id)
    return `the run has the request id ${run.request_id}, its first event ${String(requestId)}`;
  const answered =
    dataOf(rasp, 'interaction.reply.accepted').length + dataOf(rasp, 'interaction.auto_decide.timeout').length;
  if (run.attempt_number !== 1 + answered)
    return `the run is in attempt ${run.attempt_number}, its events in ${1 + answered}`;
  const begun = dataOf(rasp, 'lifecycle.state.changed').filter(({ to }) => to === 'running').length;
  if (run.epoch < begun) return `the run had ${run.epoch} owners, its events tell of ${begun} turns`;
  const last = rasp.at(-1)?.ts ?? '';
  return run.heads.ts === Date.parse(last)
    ? null
    : `the time of the last event is ${last}, the run says ${run.heads.ts}`;
}

// Which conversation it began with a copy of stands in the journal of the source: nothing can be said once that is
// deleted.
async function explainFork(store: Found, { spec: { fork_from: fork } }: RunRecord): Promise<string | null> {
  const source = fork && (await store.loadRun(fork.run_id));
  if (!source) return null;
  if (fork.home !== (source.spec.home ?? ''))
    return `the conversation that it began with a copy of is not in the home of run ${fork.run_id}`;
  // A source that continued another has its session from there, and no event of its own for it.
  if ((await store.loadHandle(source.request_id))?.handle_value === fork.session) return null;
  const lines = await store.readJournal(fork.run_id, 'rasp', { limit: Number.MAX_SAFE_INTEGER });
  const bound = dataOf(
    lines.map((line) => parseJson(line) as unknown as RaspEvent | undefined).filter((event) => event !== undefined),
    'lifecycle.session.bound',
  );
  return bound.some(({ session_id: id }) => id === fork.session)
    ? null
    : `the session ${fork.session} that it began with a copy of was never one of run ${fork.run_id}`;
}

function explainQuestions(
  run: RunRecord,
  rows: readonly InteractionRecord[],
  rasp: readonly RaspEvent[],
): string | null {
  const asked = rasp.filter(({ event }) => event.type === 'interaction.requested');
  const ids = asked.map(({ data }) => data['interaction_id'] as string);
  const stray = rows.find((row) => !ids.includes(row.interaction_id));
  if (stray) return `question ${stray.interaction_id} was never asked`;
  for (const [index, event] of asked.entries()) {
    const id = ids[index] ?? '';
    const row = rows.find(({ interaction_id: each }) => each === id);
    if (!row) return `question ${id} is gone`;
    const problem = explainAsked(run, row, event) ?? explainAnswer(run, row, rasp, index === asked.length - 1);
    if (problem !== null) return `question ${id}: ${problem}`;
  }
  const waited = rows.reduce(
    (sum, { resolution, asked_at: from }) => sum + Math.max(0, (resolution?.at ?? from) - from),
    0,
  );
  return waited === run.waited_ms ? null : `the questions waited for ${waited} ms, the run says ${run.waited_ms}`;
}

function explainAsked(
  run: RunRecord,
  row: InteractionRecord,
  { data, attempt_number: attempt }: RaspEvent,
): string | null {
  const { interaction_id: _id, asked_at: askedAt, ...question } = data as unknown as RaspData['interaction.requested'];
  const { interaction_id: _own, asked_at: _ownTime, ...stored } = row.question;
  if (differ(stored, question)) return 'it is not what was asked';
  if (row.attempt_number !== attempt) return `it was asked in attempt ${attempt}, not in ${row.attempt_number}`;
  if (askedAt !== undefined && row.asked_at !== Date.parse(askedAt)) return `it was asked at ${askedAt}`;
  const options = parseRuntimeOptions(run.spec.runtime_options);
  if (!(Math.abs(row.due_at - row.asked_at - options.session_timeout_sec * 1000) < 1))
    return 'its time is not that of the run';
  // Where the process is all there is, time is over for a strict run too.
  return row.decides === (run.spec.sticky === true || !options.interactive_require_user_reply)
    ? null
    : 'who decides when its time is over is not what the run says';
}

function explainAnswer(
  run: RunRecord,
  { interaction_id: id, state, resolution }: InteractionRecord,
  rasp: readonly RaspEvent[],
  isLast: boolean,
): string | null {
  const reply = dataOf(rasp, 'interaction.reply.accepted').find((each) => each.interaction_id === id);
  const decided = dataOf(rasp, 'interaction.auto_decide.timeout').find((each) => each.interaction_id === id);
  const told = reply ? 'answered' : decided ? 'auto_decided' : unanswered(run, isLast);
  if (state !== told) return `it is ${state}, by the events ${told}`;
  if (state === 'pending') return resolution === null ? null : 'it is pending and has an answer';
  const expected = {
    response: (reply ?? decided)?.response ?? null,
    actor: reply?.actor ?? null,
    idempotency_key: reply?.idempotency_key ?? null,
    finish: reply?.finish ?? decided?.policy === 'finish',
  };
  const at = reply?.accepted_at ?? decided?.decided_at;
  const { at: storedAt, actor, ...stored } = resolution ?? { at: 0, actor: null };
  // Who canceled stands in the change of state.
  if (differ({ ...stored, ...((reply ?? decided) ? { actor } : { actor: null }) }, expected))
    return 'its answer is not the one that was given';
  return at === undefined || storedAt === Date.parse(at) ? null : `it was answered at ${at}`;
}

// What becomes of a question that nobody answered.
function unanswered({ status }: RunRecord, isLast: boolean): InteractionRecord['state'] {
  if (!isLast || !isTerminal(status)) return 'pending';
  return status === 'canceled' ? 'canceled' : 'abandoned';
}

async function explainSession(store: Found, run: RunRecord, rasp: readonly RaspEvent[]): Promise<string | null> {
  const handle = await store.loadHandle(run.request_id);
  if (!handle)
    return dataOf(rasp, 'interaction.requested').length > 0
      ? 'the session that the questions were asked in is not stored'
      : null;
  const { engine, cwd, home } = run.spec;
  if (differ([handle.engine, handle.cwd, handle.home], [engine, cwd, home]))
    return 'the session is not one of this run';
  if (handle.handle_type !== 'session_id' && run.spec.sticky !== true)
    return `the session cannot be a ${handle.handle_type}`;
  // A run that continues another has its session from there.
  const bound =
    run.spec.continue_from === undefined ? rasp.filter(({ event }) => event.type === 'lifecycle.session.bound') : [];
  if (bound.length === 0) return null;
  const first = bound.find(({ data }) => data['session_id'] === handle.handle_value);
  if (!first) return `the session ${handle.handle_value} was never named by the engine`;
  return first.attempt_number === handle.created_at_attempt
    ? null
    : `the session began in attempt ${first.attempt_number}, not ${handle.created_at_attempt}`;
}

async function explainCounts(store: Found, run: RunRecord, rasp: readonly RaspEvent[]): Promise<string | null> {
  const turns = dataOf(rasp, 'lifecycle.turn.ended');
  const profiles = [...new Set(turns.map(({ parser }) => parser.profile))].toSorted();
  const { engine } = run.spec;
  const sums = profiles.map((profile) => {
    const own = turns.filter(({ parser }) => parser.profile === profile).map(({ parser }) => parser);
    const sum = (of: 'units' | 'parsed' | 'fallbacks'): number => own.reduce((total, counts) => total + counts[of], 0);
    return {
      engine,
      profile,
      turns: own.length,
      units: sum('units'),
      parsed: sum('parsed'),
      fallbacks: sum('fallbacks'),
    };
  });
  const warnings = turns.flatMap(({ parser: { profile, warnings: counts } }) =>
    Object.entries(counts).map(([name, count]) => ({ engine, profile, name, count })),
  );
  const unknown = turns
    .filter(({ completion }) => completion.result === 'unknown')
    .map(({ parser: { profile }, completion }) => ({ engine, profile, name: completion.reason_code, count: 1 }));
  const told = addUpTurns({ sums, warnings, unknown });
  return differ(await store.sumTurns(run.run_id), told) ? 'the counts of its turns are not those of its events' : null;
}

// By these a reader finds the lines from a number or a time on: with a wrong one it would miss some, or get some twice.
function explainPieces(
  protocol: string,
  pieces: readonly SegmentRange[],
  events: readonly ({ readonly ts?: string } | undefined)[],
): string | null {
  let next = 1;
  for (const { seq_from: from, seq_to: to, ts_from: since, ts_to: until } of pieces) {
    if (from !== next || to < from) return `${protocol}: the lines from ${next} on are kept as ${from} to ${to}`;
    const outside = events
      .slice(from - 1, to)
      .findIndex((event) => Date.parse(event?.ts ?? '') < since || Date.parse(event?.ts ?? '') > until);
    if (outside >= 0) return `${protocol}: line ${from + outside} is not found by its time`;
    next = to + 1;
  }
  return next === events.length + 1 ? null : `${protocol}: ${events.length} lines are kept as ${next - 1}`;
}
