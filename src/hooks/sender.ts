// Sends the deliveries that are due, the earliest first. Each hook gets one at a time, so a slow receiver delays only
// its own deliveries. All state is in the store: after a crash between sending and storing the result, the delivery is
// sent again with the same id. Only requests in progress are held in memory.
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { Alarm, ClockAlarm, pause, type Timers } from '../process/timers.js';
import type { Delivery, DeliveryOutcome, Store } from '../store/store.js';
import type { SendingHook } from './load-hooks.js';
import { post, type Fetch } from './post.js';
import { afterFailure, TRIED_FOR_MS } from './schedule.js';

// The pause after a failure of the store.
const REST_MS = 5000;

export interface SenderDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly fetch: Fetch;
  // Other hosts also send: a hook that is unknown here may be in their settings.
  readonly isShared?: boolean;
  // Called after a failed attempt, with the time of the next one.
  readonly onFailed: (delivery: Delivery, error: string, nextAt: number) => void;
  readonly onGivenUp: (delivery: Delivery, error: string) => void;
  readonly log: Log;
}

export class HookSender {
  readonly #deps: SenderDeps;
  readonly #hooks: ReadonlyMap<string, SendingHook>;
  // Hooks with a request in progress.
  readonly #busy = new Map<string, Promise<void>>();
  // Hooks that are not in the settings of this host. A claim on their deliveries expires after a minute, and another
  // host can claim them.
  readonly #unknown = new Set<string>();
  readonly #alarm: Alarm;
  readonly #due: ClockAlarm;
  readonly #stopListening: () => void;
  // Aborting #closing prevents new requests; aborting #stop also ends those in progress.
  readonly #closing = new AbortController();
  readonly #stop = new AbortController();
  // At most one read of the store at a time, and one more if `wake` was called meanwhile.
  #polling: Promise<void> | null = null;
  #again = false;

  constructor(deps: SenderDeps, hooks: readonly SendingHook[]) {
    this.#deps = deps;
    this.#alarm = new Alarm(deps.timers);
    this.#due = new ClockAlarm(deps.clock, deps.timers);
    this.#hooks = new Map(hooks.map((hook) => [hook.name, hook]));
    this.#stopListening = deps.store.onCommitted(({ status }) => {
      if (status !== undefined) this.wake();
    });
    this.wake();
  }

  wake(): void {
    if (this.#closing.signal.aborted) return;
    this.#again = true;
    this.#polling ??= this.#pollWhileAwake();
  }

  async #pollWhileAwake(): Promise<void> {
    while (this.#again && !this.#closing.signal.aborted) {
      this.#again = false;
      await this.#poll().catch((error: unknown) => {
        this.#deps.log.error(error, { message: 'webhook deliveries could not be read or stored' });
        this.#arm(REST_MS);
      });
    }
    this.#polling = null;
  }

  async #poll(): Promise<void> {
    const { store, clock } = this.#deps;
    const busy = (): string[] => [...this.#busy.keys(), ...this.#unknown];
    for (
      let next = await store.nextDelivery(clock.now(), busy());
      next && !this.#closing.signal.aborted;
      next = await store.nextDelivery(clock.now(), busy())
    ) {
      const hook = this.#hooks.get(next.hook);
      if (hook) this.#begin(hook, next);
      else if (this.#deps.isShared && clock.now() < next.created_at + TRIED_FOR_MS) this.#unknown.add(next.hook);
      else
        await this.#finish(next, {
          type: 'given_up',
          at: clock.now(),
          error: `there is no webhook "${next.hook}" any more`,
        });
    }
    const at = await store.nextDeliveryAt(busy());
    this.#alarm.clear();
    if (at === null) this.#due.clear();
    else if (!this.#closing.signal.aborted) this.#due.set(at, () => this.wake());
  }

  #begin(hook: SendingHook, delivery: Delivery): void {
    const sent = this.#send(hook, delivery)
      .catch((error: unknown) => {
        // The delivery may have arrived but is still due in the store: pause before it is sent again.
        this.#deps.log.error(error, { message: 'webhook deliveries could not be read or stored' });
        return pause(this.#deps.timers, REST_MS, this.#closing.signal);
      })
      .finally(() => {
        this.#busy.delete(hook.name);
        this.wake();
      });
    this.#busy.set(hook.name, sent);
  }

  async #send(hook: SendingHook, delivery: Delivery): Promise<void> {
    const { clock, fetch, timers } = this.#deps;
    const problem = await post({ fetch, timers, clock, stop: this.#stop.signal }, hook, delivery);
    // An attempt that our own shutdown aborted is not counted; the delivery is due at the next start.
    if (problem !== null && this.#stop.signal.aborted) return;
    await this.#finish(
      delivery,
      problem === null ? { type: 'delivered' } : afterFailure(delivery, clock.now(), problem.text),
    );
  }

  async #finish(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    await this.#deps.store.finishDelivery(delivery.delivery_id, outcome);
    if (outcome.type === 'given_up') this.#deps.onGivenUp(delivery, outcome.error);
    if (outcome.type === 'retry') this.#deps.onFailed(delivery, outcome.error, outcome.at);
  }

  #arm(ms: number): void {
    if (!this.#closing.signal.aborted) this.#alarm.set(ms, () => this.wake());
  }

  // Starts no new request. Requests in progress end within their time limit, or at once when `hurry` resolves.
  async close(hurry?: Promise<void>): Promise<void> {
    this.#closing.abort();
    this.#stopListening();
    this.#alarm.clear();
    this.#due.clear();
    void hurry?.then(() => this.#stop.abort());
    await this.#polling;
    await Promise.all(this.#busy.values());
  }
}
