// Dispatch on a store that hosts share: turns as the embedded one starts them, from those that were claimed; woken by what other hosts
// commit, and now and then by itself, in case a hint was lost. Questions are decided by jobs of the database, each by one host.
import type { Clock } from '../../kernel/clock.js';
import { Alarm, type Timers } from '../../process/timers.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';
import type { Dispatch, DispatchHandlers } from '../dispatch.js';
import { readClock } from '../../store/postgres/host-lease.js';
import { EmbeddedDispatch } from '../embedded.js';
import { DecisionWorker } from './decision-worker.js';

const LOOK_MS = 2000;
const LATE_MS = 10_000;

export interface PostgresDispatchDeps {
  readonly url: string;
  readonly store: PostgresStore;
  readonly clock: Clock;
  readonly timers: Timers;
}

export class PostgresDispatch implements Dispatch {
  readonly #deps: PostgresDispatchDeps;
  readonly #handlers: DispatchHandlers;
  readonly #inner: EmbeddedDispatch;
  #worker: DecisionWorker | null = null;
  #late: Promise<void> = Promise.resolve();
  readonly #alarm: Alarm;
  // Of its own: whatever is woken for, what is late is looked after.
  readonly #lateAlarm: Alarm;
  readonly #stopListening: (() => void)[];
  #isAwake = false;
  #isClosing = false;

  constructor(deps: PostgresDispatchDeps, handlers: DispatchHandlers, slots: number) {
    this.#deps = deps;
    this.#handlers = handlers;
    this.#inner = new EmbeddedDispatch(deps, handlers, slots, { decides: false });
    this.#alarm = new Alarm(deps.timers);
    this.#lateAlarm = new Alarm(deps.timers);
    this.#stopListening = [
      deps.store.onCommitted(({ origin, status }) => {
        if (origin === 'elsewhere' && status === 'queued') this.#wakeIfAwake();
      }),
      deps.store.onMissed(() => this.#wakeIfAwake()),
    ];
  }

  // Before its first word nothing is begun.
  #wakeIfAwake(): void {
    if (this.#isAwake) this.wake();
  }

  wake(): void {
    if (this.#isClosing) return;
    if (!this.#isAwake) this.#lookLate();
    this.#isAwake = true;
    this.#worker ??= new DecisionWorker(this.#deps, this.#handlers);
    this.#alarm.set(LOOK_MS, () => this.wake());
    this.#inner.wake();
  }

  #lookLate(): void {
    this.#lateAlarm.set(LOOK_MS, () => {
      this.#late = this.#decideLate().catch((error: unknown) => this.#handlers.onFailure(error)).finally(() => {
        if (!this.#isClosing) this.#lookLate();
      });
    });
  }

  // A job that was lost with its host, or that there never was.
  async #decideLate(): Promise<void> {
    const next = await this.#deps.store.nextDecision();
    if (next && next.due_at < (await readClock(this.#deps.store.database)) - LATE_MS) await this.#handlers.decide(next);
  }

  idle(): Promise<void> {
    return this.#inner.idle();
  }

  async close(): Promise<void> {
    for (const stop of this.#stopListening) stop();
    this.#isClosing = true;
    this.#isAwake = false;
    this.#alarm.clear();
    this.#lateAlarm.clear();
    await Promise.all([this.#worker?.close(), this.#late, this.#inner.close()]);
  }
}
