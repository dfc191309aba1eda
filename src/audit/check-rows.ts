// Checks that the database rows of a run match its events. Folds the events into rows again and compares these with the
// stored ones: the request, the questions with their answers, the session and the turn counts.
import { everyEvent } from '../journal/every-event.js';
import { recordedCancel } from '../journal/run-state.js';
import { toTimestamp } from '../kernel/clock.js';
import { canonicalText } from '../kernel/json.js';
import type { Message } from '../kernel/message.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { foldRun, startFold, type FoldedQuestion, type FoldedRun } from '../run/run-fold.js';
import { agreesWithProfile, waitPolicyOf, withoutWaiting } from '../run/waiting/wait-policy.js';
import { addUpTurns } from '../store/add-up-turns.js';
import { rowsOf } from '../store/row-changes.js';
import type { InteractionRecord, RunRecord, Store, TurnCounts } from '../store/store.js';
import { failed, passed, type EventCheck, type MadeCheck } from './check.js';
import type { JournalScan } from './check-journal.js';
import { finding } from './findings.js';
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

  async finish(): Promise<MadeCheck> {
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
    return passed(
      'rows',
      questions.length === 1 ? finding('rows.passed_one') : finding('rows.passed', { questions: questions.length }),
    );
  }

  #explainRun(run: RunRecord): Message | null {
    if (!this.#created) return finding('rows.not_created');
    const {
      request_id: requestId,
      actor: _actor,
      interactive_profile: profile,
      session: _session,
      fold_version: _version,
      ...request
    } = this.#created;
    const { home: _home, fork_from: fork, ...spec } = withoutWaiting(run.spec);
    if (differ({ ...spec, fork_from: fork?.run_id }, request)) return finding('rows.request');
    if (!agreesWithProfile(run.spec, profile)) return finding('rows.wait_policy');
    if (requestId !== run.request_id)
      return finding('rows.request_id', { row: run.request_id, event: String(requestId) });
    const { attempt_number: attempt, cancel_requested: cancel } = this.#state;
    if (run.attempt_number !== attempt) return finding('rows.turn', { row: run.attempt_number, events: attempt });
    if (run.epoch < this.#begun) return finding('rows.owners', { owners: run.epoch, turns: this.#begun });
    // Earlier versions wrote the row without an event.
    if ((cancel !== null || this.#isExact) && differ(recordedCancel(run), cancel)) return finding('rows.cancel');
    return run.heads.ts === Date.parse(this.#lastTs)
      ? null
      : finding('rows.last_event', { event: this.#lastTs, row: run.heads.ts });
  }

  // The journal of the source names the conversation that the fork copied. Returns null if the source was deleted.
  async #explainFork({ spec: { fork_from: fork } }: RunRecord): Promise<Message | null> {
    const source = fork && (await this.#store.loadRun(fork.run_id));
    if (!source) return null;
    if (fork.home !== (source.spec.home ?? '')) return finding('rows.fork_home', { run: fork.run_id });
    // A source that continued another run has its session from there, and no event of its own for it.
    if ((await this.#store.loadHandle(source.request_id))?.handle_value === fork.session) return null;
    for await (const { event, data } of everyEvent(this.#store, fork.run_id))
      if (event.type === 'lifecycle.session.bound' && data.session_id === fork.session) return null;
    return finding('rows.fork_session', { session: fork.session, run: fork.run_id });
  }

  #explainQuestions(run: RunRecord, rows: readonly InteractionRecord[]): Message | null {
    const stray = rows.find(({ interaction_id: id }) => !this.#questions.has(id));
    if (stray) return finding('rows.stray_question', { question: stray.interaction_id });
    const byId = new Map(rows.map((row) => [row.interaction_id, row]));
    for (const [id, expected] of this.#questions) {
      const row = byId.get(id);
      if (!row) return finding('rows.missing_question', { question: id });
      const problem = explainAsked(row, expected) ?? this.#explainAnswer(row, expected);
      if (problem !== null) return finding('rows.question', { question: id, problem });
    }
    const waited = this.#isExact ? this.#state.waited_ms : waitedIn(rows);
    return waited === run.waited_ms ? null : finding('rows.waited', { waited, row: run.waited_ms });
  }

  #explainAnswer(row: InteractionRecord, { question, hasResolvedAt }: ExpectedQuestion): Message | null {
    if (row.state !== question.state) return finding('question.state', { row: row.state, state: question.state });
    if (question.resolution === null) return row.resolution === null ? null : finding('question.answer_early');
    const { at, ...expected } = question.resolution;
    const { at: storedAt, ...stored } = row.resolution ?? { at: 0 };
    // Earlier versions did not store who canceled as the actor of the answer.
    const isAnswered = question.state === 'answered' || question.state === 'auto_decided';
    const actor = this.#isExact || isAnswered ? {} : { actor: null };
    if (differ({ ...stored, ...actor }, { ...expected, ...actor })) return finding('question.answer');
    return !hasResolvedAt || storedAt === at ? null : finding('question.answer_time', { time: toTimestamp(at) });
  }

  #explainSession({ run, session: handle }: RunRows): Message | null {
    if (this.#isExact) return differ(handle, this.#state.session) ? finding('rows.session') : null;
    if (!handle) return this.#questions.size > 0 ? finding('rows.session_missing') : null;
    const { engine, cwd, home } = run.spec;
    if (differ([handle.engine, handle.cwd, handle.home], [engine, cwd, home])) return finding('rows.session_other');
    if (handle.handle_type !== 'session_id' && !waitPolicyOf(run.spec).needsProcess)
      return finding('rows.session_type', { type: String(handle.handle_type) });
    // A run that continues another run inherits its session.
    if (run.spec.continue_from !== undefined || !this.#hasBound) return null;
    const first = this.#boundAt;
    if (first === null) return finding('rows.session_unknown', { session: handle.handle_value });
    return first === handle.created_at_attempt
      ? null
      : finding('rows.session_turn', { turn: first, row: String(handle.created_at_attempt) });
  }

  #explainCounts({ run, counts }: RunRows): Message | null {
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
    return differ(counts, expected) ? finding('rows.counts') : null;
  }
}

function explainAsked(row: InteractionRecord, { question: asked, hasAskedAt }: ExpectedQuestion): Message | null {
  // Earlier versions stored the id and the time with the question as well.
  const { interaction_id: _id, asked_at: _at, ...stored } = row.question;
  if (differ(stored, asked.question)) return finding('question.text');
  if (row.attempt_number !== asked.attempt_number)
    return finding('question.turn', { turn: asked.attempt_number, row: row.attempt_number });
  if (hasAskedAt && row.asked_at !== asked.asked_at)
    return finding('question.time', { time: toTimestamp(asked.asked_at) });
  // A timeout may have a fraction of a millisecond, which a column does not hold.
  if (!(Math.abs(row.due_at - row.asked_at - (asked.due_at - asked.asked_at)) < 1)) return finding('question.deadline');
  return row.decides === asked.decides ? null : finding('question.decides');
}

function waitedIn(rows: readonly InteractionRecord[]): number {
  return rows.reduce((sum, { resolution, asked_at: from }) => sum + Math.max(0, (resolution?.at ?? from) - from), 0);
}

function differ(a: unknown, b: unknown): boolean {
  return canonicalText(a ?? null) !== canonicalText(b ?? null);
}
