// Slows down clients that present wrong credentials: the response to each further failure from an address is delayed
// longer, up to a limit. Valid credentials are never delayed. Memory is bounded: the oldest addresses are forgotten
// first, and only a fixed number of requests wait. Failures are counted per address and minute for the administrative
// journal.
import type { Clock } from '../../kernel/clock.js';
import { toTimestamp } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import { pause, type Timers } from '../../process/timers.js';
import { networkOf } from './client-address.js';

export interface AttemptLimits {
  // This many failures get an immediate response; then the delay starts and doubles.
  readonly free: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  // The maximum number of waiting requests, in total and per address; more are refused.
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
// At most this many addresses per minute are counted separately; the rest is "other".
const MOST_COUNTED = 32;
// Counts are stored this long after the first one.
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
  // Called once per minute and network address, at its first failure in that minute. `failures` is the total so far.
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

  // Resolves when the failure may get its response: to null, or to the number of seconds after which to try again if
  // too many requests are waiting.
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
    // Moves the address to the end: the oldest failure is forgotten first.
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

  // Stores the current counts, for a reader of the journal.
  async flush(): Promise<void> {
    this.#write();
    await this.#writing;
  }

  // Ends the delay of all waiting requests.
  async close(): Promise<void> {
    this.#closing.abort();
    await this.flush();
  }
}
