// Dispatch on a store that hosts share: turns as the embedded one starts them, from those that were claimed; woken by what other hosts
// commit, and now and then by itself, in case a hint was lost. Questions are decided by jobs of the database, each by one host.
import type { Clock } from '../../kernel/clock.js';
import { Alarm, type Timers } from '../../process/timers.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';
import type { Dispatch, DispatchHandlers } from '../dispatch.js';
import { EmbeddedDispatch } from '../embedded.js';

const LOOK_MS = 2000;

export interface PostgresDispatchDeps {
  readonly store: PostgresStore;
  readonly clock: Clock;
  readonly timers: Timers;
}

export class PostgresDispatch implements Dispatch {
  readonly #inner: EmbeddedDispatch;
  readonly #alarm: Alarm;
  readonly #stopListening: (() => void)[];
  #isAwake = false;

  constructor(deps: PostgresDispatchDeps, handlers: DispatchHandlers, slots: number) {
    this.#inner = new EmbeddedDispatch(deps, handlers, slots);
    this.#alarm = new Alarm(deps.timers);
    this.#stopListening = [
      deps.store.onCommitted(({ origin, status, asked }) => {
        if (origin === 'elsewhere' && (status === 'queued' || asked !== undefined)) this.#wakeIfAwake();
      }),
      deps.store.onMissed(() => this.#wakeIfAwake()),
    ];
  }

  // Before its first word nothing is begun.
  #wakeIfAwake(): void {
    if (this.#isAwake) this.wake();
  }

  wake(): void {
    this.#isAwake = true;
    this.#alarm.set(LOOK_MS, () => this.wake());
    this.#inner.wake();
  }

  idle(): Promise<void> {
    return this.#inner.idle();
  }

  async close(): Promise<void> {
    for (const stop of this.#stopListening) stop();
    this.#isAwake = false;
    this.#alarm.clear();
    await this.#inner.close();
    this.#alarm.clear();
  }
}
