// Retention: deletes ended runs by the rules of the settings. First the runs that ended long ago, then the oldest ones
// until all run folders together fit into the limit. Never deletes a run that has not ended, or whose session another
// run uses.
import { lstat } from 'node:fs/promises';
import { sep } from 'node:path';
import { listFolder } from '../files/list-folder.js';
import type { OnFailure } from '../kernel/log.js';
import { unlessDamaged } from '../kernel/stored-json.js';
import type { Timers } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import type { EndedRun } from '../store/store.js';
import { deleteRun, type DeleteDeps } from './delete-run.js';
import { everyRunId } from '../journal/every-run.js';
import { runFolder } from '../journal/run-folder.js';

const DAY_MS = 24 * 3600 * 1000;
const SWEEP_MS = 3600 * 1000;
const BY_RETENTION = { actor: { kind: 'system', name: 'retention' }, address: null } as const;

export interface RetentionRules {
  readonly ended_after_days?: number;
  // The limit of all run folders together.
  readonly max_bytes?: number;
}

export interface SweepOptions {
  // Aborted: no further run is deleted.
  readonly signal: AbortSignal;
  readonly onFailure: OnFailure;
}

// How many runs are read at once.
const PAGE = 100;

// Resolves to the ids of the deleted runs. A run that cannot be deleted is reported and does not stop the sweep.
export async function sweep(
  deps: DeleteDeps,
  rules: RetentionRules,
  { signal, onFailure }: SweepOptions,
): Promise<string[]> {
  const { ended_after_days: days, max_bytes: limit } = rules;
  const sweeper = new Sweeper(deps, onFailure);
  const before = days === undefined ? 0 : deps.clock.now() - days * DAY_MS;
  await sweeper.delete({ before, isOver: () => signal.aborted, isWanted: () => true });
  if (limit !== undefined) {
    const sizes = new Map<string, number>();
    for await (const runId of everyRunId(deps.store))
      if (!signal.aborted) sizes.set(runId, await sizeOf(runFolder(deps.dataDir, runId).path));
    let total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
    sweeper.onDeleted = (runId) => (total -= sizes.get(runId) ?? 0);
    await sweeper.delete({
      before: Number.MAX_SAFE_INTEGER,
      isOver: () => total <= limit || signal.aborted,
      // Deleting a run whose files are on the disk of another host frees no space here.
      isWanted: (runId) => deps.files.layout !== 'local' || (sizes.get(runId) ?? 0) > 0,
    });
  }
  return [...sweeper.deleted];
}

interface Deletions {
  // Only runs that ended before this time.
  readonly before: number;
  // Checked before each deletion.
  readonly isOver: () => boolean;
  readonly isWanted: (runId: string) => boolean;
}

class Sweeper {
  readonly deleted = new Set<string>();
  readonly #deps: DeleteDeps;
  readonly #onFailure: OnFailure;
  // Runs that were not deleted, and were reported or are used by another run.
  readonly #failed = new Set<string>();
  onDeleted: (runId: string) => void = () => {};

  constructor(deps: DeleteDeps, onFailure: OnFailure) {
    this.#deps = deps;
    this.#onFailure = onFailure;
  }

  // The run that ended first is deleted first.
  async delete({ before, isOver, isWanted }: Deletions): Promise<void> {
    // Runs that were kept because other runs use their home. They are tried again after one of those was deleted.
    const kept = new Map<string | null, EndedRun>();
    for (let after: EndedRun | undefined; !isOver();) {
      const page = await this.#deps.store.listEnded({ before, after, limit: PAGE });
      for (const run of page) {
        if (isOver()) return;
        if (!isWanted(run.run_id)) continue;
        const outcome = await this.#deleteOne(run);
        const owner = kept.get(run.home);
        if (outcome === 'in_use') kept.set(run.home, run);
        else if (outcome === 'deleted' && owner && !isOver() && (await this.#deleteOne(owner)) === 'deleted')
          kept.delete(run.home);
        // Lets other work of this process run between two deletions.
        await new Promise((resolve) => setImmediate(resolve));
      }
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  async #deleteOne({ run_id: runId, home, continues }: EndedRun): Promise<'deleted' | 'in_use' | 'failed'> {
    if (this.#failed.has(runId) || (await this.#isDamaged(runId))) return 'failed';
    // Not even tried: a deletion renames the folder briefly, and an agent may be working in it.
    if (home !== null && !continues && (await this.#deps.store.findInHome(home, runId))) return 'in_use';
    try {
      await deleteRun(this.#deps, runId, { isRunHere: false, by: BY_RETENTION, onFailure: this.#onFailure });
      this.deleted.add(runId);
      this.onDeleted(runId);
      return 'deleted';
    } catch (error) {
      if (error instanceof RequestError && error.code === 'SESSION_IN_USE') return 'in_use';
      this.#failed.add(runId);
      // Another caller deleted the run first.
      if (!(error instanceof RequestError && error.code === 'RUN_NOT_FOUND')) this.#onFailure(runId, error);
      return 'failed';
    }
  }

  // Only a person deletes a damaged run.
  async #isDamaged(runId: string): Promise<boolean> {
    let isDamaged = false;
    await unlessDamaged(this.#deps.store.summaries.loadRun(runId), (damage) => {
      isDamaged = true;
      this.#failed.add(runId);
      this.#onFailure(runId, damage);
    });
    return isDamaged;
  }
}

// The sum of the file sizes. Does not follow links. A file that is removed meanwhile or cannot be read counts as 0.
async function sizeOf(path: string | Buffer): Promise<number> {
  let bytes = 0;
  try {
    for await (const entries of listFolder(path, 1000)) {
      for (const { name, kind } of entries) {
        const inside = Buffer.concat([Buffer.from(path), Buffer.from(sep), name]);
        bytes +=
          kind === 'folder' ? await sizeOf(inside) : await lstat(inside).then(({ size }) => size, zeroIfSystemError);
      }
    }
  } catch (error) {
    bytes += zeroIfSystemError(error);
  }
  return bytes;
}

// Throws errors of any other kind.
function zeroIfSystemError(error: unknown): number {
  if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
  return 0;
}

// Runs the sweep now and then every hour, until it is closed.
export function sweepHourly(timers: Timers, work: () => Promise<unknown>): { close(): Promise<void> } {
  let isClosing = false;
  let cancel: (() => void) | null = null;
  let working = Promise.resolve();
  const sweepAgain = (): void => {
    working = work().then(() => {
      if (!isClosing) cancel = timers.set(SWEEP_MS, sweepAgain);
    });
  };
  sweepAgain();
  return {
    close: async () => {
      isClosing = true;
      cancel?.();
      await working;
    },
  };
}
