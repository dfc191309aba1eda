// Dispatch on a store that hosts share. Starts turns like the embedded dispatch, from the runs that this host claimed.
// Wakes on commits of other hosts, and regularly in case a notification was lost. The decision loop of this host
// decides expired questions.
import type { Clock } from '../../kernel/clock.js';
import { Alarm, type Timers } from '../../process/timers.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';
import type { Ownership } from '../../ownership/ownership.js';
import type { Dispatch, DispatchHandlers } from '../dispatch.js';
import { EmbeddedDispatch } from '../embedded.js';
import { DecisionLoop } from './decision-loop.js';

const POLL_MS = 2000;

export interface PostgresDispatchDeps {
  readonly store: PostgresStore;
  readonly ownership: Pick<Ownership, 'claim'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

export class PostgresDispatch implements Dispatch {
  readonly #inner: EmbeddedDispatch;
  readonly #decisions: DecisionLoop;
  readonly #alarm: Alarm;
  readonly #stopListening: (() => void)[];
  #isAwake = false;
  #isClosing = false;

  constructor(deps: PostgresDispatchDeps, handlers: DispatchHandlers, slots: number) {
    this.#decisions = new DecisionLoop(deps, handlers);
    this.#inner = new EmbeddedDispatch(deps, handlers, { slots, decides: false });
    this.#alarm = new Alarm(deps.timers);
    this.#stopListening = [
      deps.store.onCommitted(({ origin, status, asked, decides_at: at }) => {
        if (origin === 'elsewhere' && status === 'queued') this.#wakeIfAwake();
        if (asked !== undefined && at !== null && this.#isAwake) this.#decisions.expect(at);
      }),
      deps.store.onMissed(() => {
        this.#wakeIfAwake();
        if (this.#isAwake) this.#decisions.check();
      }),
    ];
  }

  // Starts no turn before the first call of wake().
  #wakeIfAwake(): void {
    if (this.#isAwake) this.wake();
  }

  wake(): void {
    if (this.#isClosing) return;
    if (!this.#isAwake) this.#decisions.check();
    this.#isAwake = true;
    this.#alarm.set(POLL_MS, () => this.wake());
    this.#inner.wake();
  }

  setSlots(slots: number): void {
    this.#inner.setSlots(slots);
  }

  idle(): Promise<void> {
    return this.#inner.idle();
  }

  async close(): Promise<void> {
    for (const stop of this.#stopListening) stop();
    this.#isClosing = true;
    this.#isAwake = false;
    this.#alarm.clear();
    await Promise.all([this.#decisions.close(), this.#inner.close()]);
  }
}
