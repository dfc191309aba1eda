// Checks that the database rows of a run match its events. Folds the events into rows again and compares these with the
// stored ones: the request, the questions with their answers, the session and the turn counts.
import { everyEvent } from '../journal/every-event.js';
import { recordedCancel } from '../journal/run-state.js';
import { toTimestamp } from '../kernel/clock.js';
import { canonicalText } from '../kernel/json.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { foldRun, startFold, type FoldedQuestion, type FoldedRun } from '../run/run-fold.js';
import { agreesWithProfile, waitPolicyOf, withoutWaiting } from '../run/waiting/wait-policy.js';
import { addUpTurns } from '../store/add-up-turns.js';
import { rowsOf } from '../store/row-changes.js';
import type { InteractionRecord, RunRecord, Store, TurnCounts } from '../store/store.js';
import { failed, passed, type Check, type EventCheck } from './check.js';
import type { JournalScan } from './check-journal.js';
import { changesRows, type RunRows } from './load-rows.js';

// Reads the source of a fork.
type Source = Pick<Store, 'loadHandle' | 'loadRun' | 'readJournal'>;
type Created = RaspData['lifecycle.run.created'] & { readonly interactive_profile?: { readonly kind: string } };

interface ExpectedQuestion {
  readonly question: FoldedQuestion;
  // Whether the events hold the time of the question, and that of its answer. Those of the first versions do not.
  readonly hasAskedAt: boolean;
  readonly hasResolvedAt: boolean;
}

export class RowsCheck implements EventCheck {
  readonly #store: Source;
  readonly #rows: RunRows;
  readonly #scans: readonly JournalScan[];
  #state: FoldedRun;
  #created: Created | null = null;
  readonly #questions = new Map<string, ExpectedQuestion>();
  readonly #turns: TurnCounts[] = [];
  // Whether the engine named any session, and the attempt in which it first named the stored one.
  #hasBound = false;
  #boundAt: number | null = null;
  #begun = 0;
  #lastTs = '';

  constructor(store: Source, rows: RunRows, scans: readonly JournalScan[]) {
    this.#store = store;
    this.#rows = rows;
    this.#scans = scans;
    this.#state = startFold(rows.run.spec.home);
  }

  event(event: RaspEvent): void {
    const { attempt_number: attempt, data, ts } = event;
    const { type } = event.event;
    this.#lastTs = ts;
    if (type === 'lifecycle.session.bound') {
      this.#hasBound = true;
      if (data.session_id === this.#rows.session?.handle_value) this.#boundAt ??= attempt;
    }
    if (!changesRows(event)) return;
    if (type === 'lifecycle.run.created') this.#created ??= data as unknown as Created;
    if (type === 'lifecycle.state.changed' && data.to === 'running') this.#begun += 1;
    const before = this.#state;
    this.#state = foldRun(before, { type, attempt_number: attempt, ts, data });
    this.#collect(before, data);
  }

  #collect(before: FoldedRun, data: RaspEvent['data']): void {
    const rows = rowsOf(before, this.#state);
    if (rows === null) return;
    const { question } = this.#state;
    if (rows.asked)
      this.#questions.set(rows.asked.interaction_id, {
        question: rows.asked,
        hasAskedAt: data.asked_at !== undefined,
        hasResolvedAt: false,
      });
    const asked = rows.resolved && this.#questions.get(rows.resolved.interaction_id);
    if (asked && question)
      this.#questions.set(question.interaction_id, {
        ...asked,
        question,
        hasResolvedAt: this.#isExact || data.accepted_at !== undefined || data.decided_at !== undefined,
      });
    if (rows.turn) this.#turns.push(rows.turn);
  }

  // Whether the rows can be derived completely from the events. Runs of earlier versions have no fold_version.
  get #isExact(): boolean {
    return (this.#created?.fold_version ?? 0) >= 1;
  }

  async finish(): Promise<Check> {
    const { run, questions } = this.#rows;
    const problem =
      this.#explainRun(run) ??
      (await this.#explainFork(run)) ??
      this.#explainQuestions(run, questions) ??
      this.#explainSession(this.#rows) ??
      this.#explainCounts(this.#rows) ??
      this.#scans.find((scan) => scan.problem !== null)?.problem ??
      null;
    if (problem !== null) return failed('rows', problem);
    const count = `${questions.length} ${questions.length === 1 ? 'question' : 'questions'}`;
    return passed('rows', `the database matches the events (${count})`);
  }

  #explainRun(run: RunRecord): string | null {
    if (!this.#created) return 'no event records the creation of the run';
    const {
      request_id: requestId,
      actor: _actor,
      interactive_profile: profile,
      session: _session,
      fold_version: _version,
      ...request
    } = this.#created;
    const { home: _home, fork_from: fork, ...spec } = withoutWaiting(run.spec);
    if (differ({ ...spec, fork_from: fork?.run_id }, request))
      return 'the request in the row of the run differs from its first event';
    if (!agreesWithProfile(run.spec, profile)) return 'the wait policy of the run differs from its first event';
    if (requestId !== run.request_id)
      return `the request id of the run is ${run.request_id}, but its first event has ${String(requestId)}`;
    const { attempt_number: attempt, cancel_requested: cancel } = this.#state;
    if (run.attempt_number !== attempt)
      return `the run is in turn ${run.attempt_number}, but its events are in turn ${attempt}`;
    if (run.epoch < this.#begun) return `the run had ${run.epoch} owners, but its events start ${this.#begun} turns`;
    // Earlier versions wrote the row without an event.
    if ((cancel !== null || this.#isExact) && differ(recordedCancel(run), cancel))
      return 'the cancel request of the run differs from its event';
    return run.heads.ts === Date.parse(this.#lastTs)
      ? null
      : `the last event is dated ${this.#lastTs}, but the row of the run says ${run.heads.ts}`;
  }

  // The journal of the source names the conversation that the fork copied. Returns null if the source was deleted.
  async #explainFork({ spec: { fork_from: fork } }: RunRecord): Promise<string | null> {
    const source = fork && (await this.#store.loadRun(fork.run_id));
    if (!source) return null;
    if (fork.home !== (source.spec.home ?? ''))
      return `the copied conversation is not in the home of its source run ${fork.run_id}`;
    // A source that continued another run has its session from there, and no event of its own for it.
    if ((await this.#store.loadHandle(source.request_id))?.handle_value === fork.session) return null;
    for await (const { event, data } of everyEvent(this.#store, fork.run_id))
      if (event.type === 'lifecycle.session.bound' && data.session_id === fork.session) return null;
    return `the copied session ${fork.session} never belonged to its source run ${fork.run_id}`;
  }

  #explainQuestions(run: RunRecord, rows: readonly InteractionRecord[]): string | null {
    const stray = rows.find(({ interaction_id: id }) => !this.#questions.has(id));
    if (stray) return `question ${stray.interaction_id} has no event`;
    const byId = new Map(rows.map((row) => [row.interaction_id, row]));
    for (const [id, expected] of this.#questions) {
      const row = byId.get(id);
      if (!row) return `question ${id} is missing`;
      const problem = explainAsked(row, expected) ?? this.#explainAnswer(row, expected);
      if (problem !== null) return `question ${id}: ${problem}`;
    }
    const waited = this.#isExact ? this.#state.waited_ms : waitedIn(rows);
    return waited === run.waited_ms
      ? null
      : `the questions waited ${waited} ms, but the row of the run says ${run.waited_ms}`;
  }

  #explainAnswer(row: InteractionRecord, { question, hasResolvedAt }: ExpectedQuestion): string | null {
    if (row.state !== question.state) return `its state is ${row.state}, but the events say ${question.state}`;
    if (question.resolution === null)
      return row.resolution === null ? null : 'it has an answer although it is still pending';
    const { at, ...expected } = question.resolution;
    const { at: storedAt, ...stored } = row.resolution ?? { at: 0 };
    // Earlier versions did not store who canceled as the actor of the answer.
    const isAnswered = question.state === 'answered' || question.state === 'auto_decided';
    const actor = this.#isExact || isAnswered ? {} : { actor: null };
    if (differ({ ...stored, ...actor }, { ...expected, ...actor })) return 'its answer differs from the recorded event';
    return !hasResolvedAt || storedAt === at
      ? null
      : `the time of its answer differs from its event, ${toTimestamp(at)}`;
  }

  #explainSession({ run, session: handle }: RunRows): string | null {
    if (this.#isExact)
      return differ(handle, this.#state.session) ? 'the session differs from the one in the events' : null;
    if (!handle) return this.#questions.size > 0 ? 'the session of the questions is missing' : null;
    const { engine, cwd, home } = run.spec;
    if (differ([handle.engine, handle.cwd, handle.home], [engine, cwd, home]))
      return 'the session belongs to another engine, folder or home';
    if (handle.handle_type !== 'session_id' && !waitPolicyOf(run.spec).needsProcess)
      return `this run cannot have a session of type ${handle.handle_type}`;
    // A run that continues another run inherits its session.
    if (run.spec.continue_from !== undefined || !this.#hasBound) return null;
    const first = this.#boundAt;
    if (first === null) return `the engine never reported the session ${handle.handle_value}`;
    return first === handle.created_at_attempt
      ? null
      : `the session started in turn ${first}, not in turn ${handle.created_at_attempt}`;
  }

  #explainCounts({ run, counts }: RunRows): string | null {
    const { engine } = run.spec;
    const expected = addUpTurns({
      sums: this.#turns.map(({ parser: { profile, units, parsed, fallbacks } }) => ({
        engine,
        profile,
        turns: 1,
        units,
        parsed,
        fallbacks,
      })),
      warnings: this.#turns.flatMap(({ parser: { profile, warnings } }) =>
        Object.entries(warnings).map(([name, count]) => ({ engine, profile, name, count })),
      ),
      unknown: this.#turns
        .filter(({ completion }) => completion.result === 'unknown')
        .map(({ parser: { profile }, completion }) => ({ engine, profile, name: completion.reason_code, count: 1 })),
    });
    return differ(counts, expected) ? 'the counts of its turns differ from its events' : null;
  }
}

function explainAsked(row: InteractionRecord, { question: asked, hasAskedAt }: ExpectedQuestion): string | null {
  // Earlier versions stored the id and the time with the question as well.
  const { interaction_id: _id, asked_at: _at, ...stored } = row.question;
  if (differ(stored, asked.question)) return 'its text or options differ from its event';
  if (row.attempt_number !== asked.attempt_number)
    return `it was asked in turn ${asked.attempt_number}, not in turn ${row.attempt_number}`;
  if (hasAskedAt && row.asked_at !== asked.asked_at)
    return `its time differs from its event, ${toTimestamp(asked.asked_at)}`;
  // A timeout may have a fraction of a millisecond, which a column does not hold.
  if (!(Math.abs(row.due_at - row.asked_at - (asked.due_at - asked.asked_at)) < 1))
    return 'its deadline differs from the timeout of the run';
  return row.decides === asked.decides ? null : 'its decision on timeout differs from the settings of the run';
}

function waitedIn(rows: readonly InteractionRecord[]): number {
  return rows.reduce((sum, { resolution, asked_at: from }) => sum + Math.max(0, (resolution?.at ?? from) - from), 0);
}

function differ(a: unknown, b: unknown): boolean {
  return canonicalText(a ?? null) !== canonicalText(b ?? null);
}
