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

// Decided at the same time; each takes one of the host's database connections.
const BATCH = 4;
// After a failure, and while an expired question is left to the host that has its process.
const RETRY_MS = 1000;
// Even without a deadline: a hint can be lost, and the clock of the database can be set forward.
const LONGEST_WAIT_MS = 60_000;
// Damage does not repair itself; the question is tried again in case somebody did.
const DAMAGED_MS = 3_600_000;

export class DecisionLoop {
  readonly #deps: DecisionLoopDeps;
  readonly #handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>;
  readonly #alarm: Alarm;
  // The deadline that the timer is set for, by the clock of the database; null: it is set for no deadline.
  #armedFor: number | null = null;
  #pass: Promise<void> | null = null;
  #again = false;
  #isClosed = false;

  constructor(deps: DecisionLoopDeps, handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>) {
    this.#deps = deps;
    this.#handlers = handlers;
    this.#alarm = new Alarm(deps.timers);
  }

  // Looks for expired questions now. Runs one pass at a time; calls during a pass cause one more.
  check(): void {
    if (this.#isClosed) return;
    this.#again = true;
    this.#pass ??= this.#run().finally(() => {
      this.#pass = null;
    });
  }

  // A question was asked that is decided at this time, if that is known.
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

  // Returns whether there may be more.
  async #decideBatch(): Promise<boolean> {
    const rows = await this.#deps.store.claimDecisions(BATCH);
    await Promise.all(rows.map((row) => this.#decide(row)));
    return rows.length === BATCH;
  }

  // One that fails is tried again when its claim has expired, here or elsewhere.
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
