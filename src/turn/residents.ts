// The processes of runs that wait: kept for a while, so that an answer that comes soon finds them, and few at a time. A
// run whose process was ended to make room, or after its time, goes on in another one. One whose session lives in its
// process only is kept as long as the run waits.
import type { NativeRequest } from '../engines/native-request.js';
import type { Resident } from '../engines/resident.js';
import type { ReaderMemory } from '../engines/turn-parser.js';
import type { Timers } from '../process/timers.js';

export interface ResidentLimits {
  readonly parkAfterMs: number;
  // Those whose session is only in their process are not counted.
  readonly max: number;
}

export interface Waiter {
  readonly resident: Resident;
  readonly memory: ReaderMemory;
  // What it waits for, where it asked in the middle of its turn.
  readonly request: NativeRequest | null;
  readonly sticky: boolean;
}

interface Kept {
  readonly waiter: Waiter;
  readonly stopTimer: () => void;
  // Set when it is being ended: resolves when nothing of it is left.
  ending: Promise<void> | null;
}

export class Residents {
  readonly #timers: Timers;
  readonly #limits: ResidentLimits;
  readonly #onLost: (runId: string) => void;
  readonly #onEnded: (runId: string) => void;
  // The oldest first.
  readonly #kept = new Map<string, Kept>();

  // `onLost` is told of a process that went by itself and took its session with it, `onEnded` of each that does not
  // wait any more.
  constructor(
    timers: Timers,
    limits: ResidentLimits,
    onLost: (runId: string) => void,
    onEnded: (runId: string) => void = () => {},
  ) {
    this.#timers = timers;
    this.#limits = limits;
    this.#onLost = onLost;
    this.#onEnded = onEnded;
  }

  // Those that are being ended are kept for nobody any more.
  get count(): number {
    return [...this.#kept.values()].filter(({ ending }) => ending === null).length;
  }

  // The runs whose process waits.
  kept(): string[] {
    return [...this.#kept.keys()];
  }

  keep(runId: string, waiter: Waiter): void {
    const stopTimer = waiter.sticky ? () => {} : this.#timers.set(this.#limits.parkAfterMs, () => void this.end(runId));
    const kept: Kept = { waiter, stopTimer, ending: null };
    this.#kept.set(runId, kept);
    const over = new AbortController();
    this.#watchForgetting(runId, kept, over.signal);
    void waiter.resident.ended.then(() => {
      stopTimer();
      over.abort();
      if (this.#kept.get(runId) !== kept) return;
      this.#kept.delete(runId);
      this.#onEnded(runId);
      if (waiter.sticky && kept.ending === null) this.#onLost(runId);
    });
    this.#makeRoom();
  }

  // It goes on without the answer, and nobody listens: the answer will find another process. A session that is only
  // here has no other.
  #watchForgetting(runId: string, kept: Kept, signal: AbortSignal): void {
    const { resident, request, sticky } = kept.waiter;
    if (request === null || sticky) return;
    void resident.forgets(request, signal).then(
      () => void (!signal.aborted && this.#kept.get(runId) === kept && this.end(runId)),
      () => {},
    );
  }

  // Whether it waits for its answer.
  has(runId: string): boolean {
    return this.#kept.get(runId)?.ending === null;
  }

  // What waits for the run right now.
  waiterOf(runId: string): Waiter | null {
    return this.#kept.get(runId)?.waiter ?? null;
  }

  // Null: there is none any more, and nothing of it is left.
  async take(runId: string): Promise<Waiter | null> {
    const kept = this.#kept.get(runId);
    if (!kept) return null;
    if (kept.ending) {
      await kept.ending;
      return null;
    }
    kept.stopTimer();
    this.#kept.delete(runId);
    return kept.waiter;
  }

  // Resolves when the run has no process.
  async end(runId: string): Promise<void> {
    const kept = this.#kept.get(runId);
    if (!kept) return;
    kept.stopTimer();
    kept.ending ??= kept.waiter.resident.close().then(() => {
      if (this.#kept.get(runId) !== kept) return;
      this.#kept.delete(runId);
      this.#onEnded(runId);
    });
    await kept.ending;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((runId) => this.end(runId)));
  }

  #makeRoom(): void {
    const parkable = [...this.#kept].filter(([, { waiter, ending }]) => !waiter.sticky && ending === null);
    for (const [runId] of parkable.slice(0, Math.max(0, parkable.length - this.#limits.max))) void this.end(runId);
  }
}
