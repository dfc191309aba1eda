// The resident processes of waiting runs. A process is kept for a while, so that an early answer finds it, and only a
// limited number at a time; a run whose process was ended continues in another one. The process of a run that needs it
// (see src/run/waiting) is kept as long as the run waits.
import type { NativeRequest } from '../../engines/native-request.js';
import type { Resident } from '../../engines/resident.js';
import type { ReaderMemory } from '../../engines/turn-parser.js';
import type { Timers } from '../../process/timers.js';

export interface ResidentLimits {
  readonly parkAfterMs: number;
  // Processes that their runs need are not counted.
  readonly max: number;
}

export interface IdleResident {
  readonly resident: Resident;
  readonly memory: ReaderMemory;
  // The request that it waits for, if it asked in the middle of its turn.
  readonly request: NativeRequest | null;
  // The session ends with the process.
  readonly isNeeded: boolean;
}

interface Kept {
  readonly idleResident: IdleResident;
  readonly stopTimer: () => void;
  // Set while the process is being ended; resolves when everything of it has exited.
  ending: Promise<void> | null;
}

export class Residents {
  readonly #timers: Timers;
  readonly #limits: ResidentLimits;
  readonly #onLost: (runId: string) => void;
  readonly #onEnded: (runId: string) => void;
  // Oldest first.
  readonly #kept = new Map<string, Kept>();

  // `onLost` is called when a needed process exits by itself, `onEnded` for each process that no longer waits.
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

  // Excludes processes that are being ended.
  get count(): number {
    return [...this.#kept.values()].filter(({ ending }) => ending === null).length;
  }

  // The runs whose process waits or is being ended.
  kept(): string[] {
    return [...this.#kept.keys()];
  }

  keep(runId: string, idleResident: IdleResident): void {
    const stopTimer = idleResident.isNeeded
      ? () => {}
      : this.#timers.set(this.#limits.parkAfterMs, () => void this.end(runId));
    const kept: Kept = { idleResident, stopTimer, ending: null };
    this.#kept.set(runId, kept);
    const over = new AbortController();
    this.#watchForgetting(runId, kept, over.signal);
    void idleResident.resident.ended.then(() => {
      stopTimer();
      over.abort();
      if (this.#kept.get(runId) !== kept) return;
      this.#kept.delete(runId);
      this.#onEnded(runId);
      if (idleResident.isNeeded && kept.ending === null) this.#onLost(runId);
    });
    this.#makeRoom();
  }

  // Ends a process that no longer waits for its answer, because nobody reads its output; another process will get the
  // answer. A needed process is kept.
  #watchForgetting(runId: string, kept: Kept, signal: AbortSignal): void {
    const { resident, request, isNeeded } = kept.idleResident;
    if (request === null || isNeeded) return;
    void resident.forgets(request, signal).then(
      () => void (!signal.aborted && this.#kept.get(runId) === kept && this.end(runId)),
      () => {},
    );
  }

  // Whether a process waits for the answer of this run.
  has(runId: string): boolean {
    return this.#kept.get(runId)?.ending === null;
  }

  // Includes a process that is being ended.
  idleResidentOf(runId: string): IdleResident | null {
    return this.#kept.get(runId)?.idleResident ?? null;
  }

  // Hands the process to a turn. Resolves to null if the run has none, once every process of an earlier one has exited.
  async claim(runId: string): Promise<IdleResident | null> {
    const kept = this.#kept.get(runId);
    if (!kept) return null;
    if (kept.ending) {
      await kept.ending;
      return null;
    }
    kept.stopTimer();
    this.#kept.delete(runId);
    return kept.idleResident;
  }

  // Resolves when the run has no process.
  async end(runId: string): Promise<void> {
    const kept = this.#kept.get(runId);
    if (!kept) return;
    kept.stopTimer();
    kept.ending ??= kept.idleResident.resident.close().then(() => {
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
    const parkable = [...this.#kept].filter(
      ([, { idleResident, ending }]) => !idleResident.isNeeded && ending === null,
    );
    for (const [runId] of parkable.slice(0, Math.max(0, parkable.length - this.#limits.max))) void this.end(runId);
  }
}
