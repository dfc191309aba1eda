// Decides expired questions of a database that hosts share. Each host runs one loop: it claims a few expired questions,
// decides them, and repeats while there are more; then it sets one timer for the next deadline. A question with an
// earlier deadline re-arms the timer. A question that expired while every host was down is decided as soon as one is
// back.
import { damageIn } from '../../kernel/stored-json.js';
import { Alarm, type Timers } from '../../process/timers.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';
import { toInteraction, type InteractionRow } from '../../store/rows.js';
import type { DispatchHandlers } from '../dispatch.js';

export interface DecisionLoopDeps {
  readonly store: Pick<PostgresStore, 'claimDecisions' | 'postponeDecision' | 'findNextDecision'>;
  readonly timers: Timers;
}

// How many questions are decided at the same time. Each decision uses one of the host's database connections.
const BATCH = 4;
// The pause after a failure, and while another host that has the process of the run must decide its expired question.
const RETRY_MS = 1000;
// The longest pause, also without a deadline: a notification can be lost, and the database clock can be set forward.
const LONGEST_WAIT_MS = 60_000;
// A damaged question is tried again after this time, in case an operator repaired it.
const DAMAGED_MS = 3_600_000;

export class DecisionLoop {
  readonly #deps: DecisionLoopDeps;
  readonly #handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>;
  readonly #alarm: Alarm;
  // The deadline for which the timer is set, by the clock of the database; null: none.
  #armedFor: number | null = null;
  #pass: Promise<void> | null = null;
  #again = false;
  #isClosed = false;

  constructor(deps: DecisionLoopDeps, handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>) {
    this.#deps = deps;
    this.#handlers = handlers;
    this.#alarm = new Alarm(deps.timers);
  }

  // Checks for expired questions now. Runs one pass at a time; calls during a pass cause one more.
  check(): void {
    if (this.#isClosed) return;
    this.#again = true;
    this.#pass ??= this.#run().finally(() => {
      this.#pass = null;
    });
  }

  // Call it when a question was asked. `at`: when it expires, if known.
  expect(at: number | undefined): void {
    if (at === undefined || this.#pass !== null || this.#armedFor === null || at < this.#armedFor) this.check();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#alarm.clear();
    await this.#pass;
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#isClosed) {
      this.#again = false;
      this.#alarm.clear();
      try {
        while (!this.#isClosed && (await this.#decideBatch()));
        await this.#arm();
      } catch (error) {
        this.#handlers.onFailure(error);
        this.#wait(RETRY_MS);
      }
    }
  }

  // Resolves to true if there may be more expired questions.
  async #decideBatch(): Promise<boolean> {
    const rows = await this.#deps.store.claimDecisions(BATCH);
    await Promise.all(rows.map((row) => this.#decide(row)));
    return rows.length === BATCH;
  }

  // A decision that fails is tried again after its claim has expired, by this or another host.
  async #decide(row: InteractionRow): Promise<void> {
    try {
      await this.#handlers.decide(toInteraction(row));
    } catch (error) {
      this.#handlers.onFailure(error);
      if (damageIn(error)) await this.#deps.store.postponeDecision(row.interaction_id, DAMAGED_MS);
    }
  }

  async #arm(): Promise<void> {
    const next = await this.#deps.store.findNextDecision();
    this.#armedFor = next?.at ?? null;
    const wait = next === null ? LONGEST_WAIT_MS : next.inMs > 0 ? next.inMs : RETRY_MS;
    this.#wait(Math.min(wait, LONGEST_WAIT_MS));
  }

  #wait(ms: number): void {
    if (!this.#isClosed) this.#alarm.set(ms, () => this.check());
  }
}
