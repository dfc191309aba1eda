// Slows down clients that present wrong credentials: each further failure from an address is answered later, up to a
// limit. Only failures wait; a valid credential never does. Memory is bounded: addresses are forgotten oldest first,
// and of requests that wait only a fixed number is kept. Failures are counted per address and minute for the
// administrative journal.
import type { Clock } from '../../kernel/clock.js';
import { toTimestamp } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import { pause, type Timers } from '../../process/timers.js';
import { networkOf } from './client-address.js';

export interface AttemptLimits {
  // So many failures are answered at once; then the delay begins and doubles.
  readonly free: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  // So many requests wait at once, over all and from one address; more are refused.
  readonly mostDelayed: number;
  readonly mostDelayedPerAddress: number;
}

export const ATTEMPT_LIMITS: AttemptLimits = {
  free: 3,
  firstDelayMs: 100,
  longestDelayMs: 3000,
  mostDelayed: 200,
  mostDelayedPerAddress: 10,
};

const MINUTE = 60_000;
const FORGOTTEN_MS = 10 * MINUTE;
const MOST_ADDRESSES = 10_000;
// Of one minute, so many addresses are counted by themselves; the rest is "other".
const MOST_COUNTED = 32;
// Counts are written down so long after the first of them.
const WRITE_MS = 5000;

interface Failures {
  count: number;
  lastAt: number;
  delayed: number;
}

export interface AttemptDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly limits?: AttemptLimits;
  // Stores counts in the administrative journal.
  readonly record: (at: number, counts: JsonObject) => Promise<void>;
  // Called for the first failure of an address in a minute.
  readonly onFailed: (address: string, failures: number) => void;
  readonly onProblem: (error: unknown) => void;
}

export class FailedAttempts {
  readonly #deps: AttemptDeps;
  readonly #limits: AttemptLimits;
  readonly #addresses = new Map<string, Failures>();
  readonly #closing = new AbortController();
  #delayed = 0;
  #minute = 0;
  #counts = new Map<string, number>();
  #other = 0;
  #stopWriting: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: AttemptDeps) {
    this.#deps = deps;
    this.#limits = deps.limits ?? ATTEMPT_LIMITS;
  }

  // Resolves when the failure may be answered: null, or after how many seconds to try again where too many wait
  // already.
  async fail(address: string): Promise<number | null> {
    const now = this.#deps.clock.now();
    const network = networkOf(address);
    this.#count(network, now);
    const failures = this.#failuresOf(network, now);
    failures.count += 1;
    failures.lastAt = now;
    const delayMs = this.#delayOf(failures.count);
    if (delayMs === 0) return null;
    if (this.#delayed >= this.#limits.mostDelayed || failures.delayed >= this.#limits.mostDelayedPerAddress)
      return Math.ceil(delayMs / 1000);
    this.#delayed += 1;
    failures.delayed += 1;
    await pause(this.#deps.timers, delayMs, this.#closing.signal);
    this.#delayed -= 1;
    failures.delayed -= 1;
    return null;
  }

  #delayOf(count: number): number {
    const { free, firstDelayMs, longestDelayMs } = this.#limits;
    return count <= free ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(20, count - free - 1));
  }

  #failuresOf(network: string, now: number): Failures {
    const known = this.#addresses.get(network);
    const failures =
      known && now - known.lastAt < FORGOTTEN_MS ? known : { count: 0, lastAt: now, delayed: known?.delayed ?? 0 };
    // The latest to fail is the last to be forgotten.
    this.#addresses.delete(network);
    this.#addresses.set(network, failures);
    if (this.#addresses.size > MOST_ADDRESSES) this.#addresses.delete(this.#addresses.keys().next().value ?? '');
    return failures;
  }

  #count(network: string, now: number): void {
    const minute = Math.floor(now / MINUTE);
    if (minute !== this.#minute) {
      this.#write();
      this.#minute = minute;
    }
    const count = this.#counts.get(network);
    if (count !== undefined) this.#counts.set(network, count + 1);
    else if (this.#counts.size >= MOST_COUNTED) this.#other += 1;
    else {
      this.#counts.set(network, 1);
      this.#deps.onFailed(network, (this.#addresses.get(network)?.count ?? 0) + 1);
    }
    this.#stopWriting ??= this.#deps.timers.set(WRITE_MS, () => this.#write());
  }

  #write(): void {
    this.#stopWriting?.();
    this.#stopWriting = null;
    if (this.#counts.size === 0) return;
    const counts: JsonObject = {
      minute: toTimestamp(this.#minute * MINUTE),
      addresses: Object.fromEntries(this.#counts),
      ...(this.#other === 0 ? {} : { other: this.#other }),
    };
    this.#counts = new Map();
    this.#other = 0;
    const at = this.#deps.clock.now();
    this.#writing = this.#writing.then(() => this.#deps.record(at, counts)).catch(this.#deps.onProblem);
  }

  // Writes the counts so far, for somebody who reads the journal.
  async flush(): Promise<void> {
    this.#write();
    await this.#writing;
  }

  // Answers everybody who waits.
  async close(): Promise<void> {
    this.#closing.abort();
    await this.flush();
  }
}
