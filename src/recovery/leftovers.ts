// Removes the files of deleted runs. Each host removes the files on its own disk, also those of runs that were deleted
// while it was stopped.
import { isRunId } from '../kernel/ids.js';
import type { OnFailure } from '../kernel/log.js';
import { endLeftovers } from '../process/end-leftovers.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { removeFolder } from '../journal/remove-folder.js';
import { runFolder } from '../journal/run-folder.js';

// How many runs one query returns.
const PAGE = 50;

type LeftoverDeps = Pick<OrchestratorDeps, 'store' | 'files' | 'timers' | 'dataDir'>;

export class Leftovers {
  readonly #deps: LeftoverDeps;
  readonly #signal: AbortSignal;
  readonly #onFailure: OnFailure;
  // Runs whose files could not be removed. They are reported once and tried again at the next start.
  readonly #stuck = new Set<string>();
  #work: Promise<void> = Promise.resolve();
  // A pass that has not started yet. It will include every run that is deleted before it starts.
  #next: Promise<void> | null = null;

  constructor(deps: LeftoverDeps, signal: AbortSignal, onFailure: OnFailure) {
    this.#deps = deps;
    this.#signal = signal;
    this.#onFailure = onFailure;
  }

  remove(): Promise<void> {
    this.#next ??= this.#work.then(() => {
      this.#next = null;
      this.#work = this.#removeAll();
      return this.#work;
    });
    return this.#next;
  }

  async #removeAll(): Promise<void> {
    try {
      for (;;) {
        const runIds = await this.#deps.files.listLeftovers([...this.#stuck], PAGE);
        for (const runId of runIds) if (!this.#signal.aborted) await this.#removeOne(runId);
        if (runIds.length < PAGE || this.#signal.aborted) return;
      }
    } catch (error) {
      this.#onFailure('', error);
    }
  }

  async #removeOne(runId: string): Promise<void> {
    try {
      // The run may have been imported again: then it keeps its files.
      if (isRunId(runId) && (await this.#deps.store.loadRun(runId)) === null) await this.#removeFiles(runId);
    } catch (error) {
      this.#stuck.add(runId);
      return this.#onFailure(runId, error);
    }
    await this.#deps.files.forgetLeftover(runId);
  }

  // Ends the engine of a dead host first: it may still run in the folder.
  async #removeFiles(runId: string): Promise<void> {
    await endLeftovers((mark) => mark.startsWith(`${runId}/`), { graceMs: 0, timers: this.#deps.timers });
    await removeFolder(runFolder(this.#deps.dataDir, runId).path);
  }
}
