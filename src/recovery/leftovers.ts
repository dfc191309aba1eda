// The files of runs that were deleted, on whichever host: each host removes those that it has, also when it was away
// meanwhile.
import type { Cluster } from '../dispatch/cluster.js';
import { isRunId } from '../kernel/ids.js';
import { endLeftovers } from '../process/end-leftovers.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { removeFolder } from '../journal/remove-folder.js';
import { runFolder } from '../journal/run-folder.js';

// At a time.
const MOST = 50;

export class Leftovers {
  readonly #deps: OrchestratorDeps;
  readonly #cluster: Cluster;
  readonly #stopped: () => boolean;
  readonly #onFailure: (runId: string, error: unknown) => void;
  // Could not be removed: told once, and tried again at the next start.
  readonly #stuck = new Set<string>();
  #work: Promise<void> = Promise.resolve();
  // A look that has not begun yet: it will see what there is then.
  #next: Promise<void> | null = null;

  constructor(
    deps: OrchestratorDeps,
    cluster: Cluster,
    stopped: () => boolean,
    onFailure: (runId: string, error: unknown) => void,
  ) {
    this.#deps = deps;
    this.#cluster = cluster;
    this.#stopped = stopped;
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
        const found = await this.#cluster.listLeftovers([...this.#stuck], MOST);
        for (const runId of found) if (!this.#stopped()) await this.#removeOne(runId);
        if (found.length < MOST || this.#stopped()) return;
      }
    } catch (error) {
      this.#onFailure('', error);
    }
  }

  async #removeOne(runId: string): Promise<void> {
    try {
      // One that has come back by an import keeps its files.
      if (isRunId(runId) && (await this.#deps.store.loadRun(runId)) === null) await this.#removeFiles(runId);
    } catch (error) {
      this.#stuck.add(runId);
      return this.#onFailure(runId, error);
    }
    await this.#cluster.forgetLeftover(runId);
  }

  // An engine that was left alone when its host died must not work on in nothing.
  async #removeFiles(runId: string): Promise<void> {
    await endLeftovers((mark) => mark.startsWith(`${runId}/`), { graceMs: 0, timers: this.#deps.timers });
    await removeFolder(runFolder(this.#deps.dataDir, runId).path);
  }
}
