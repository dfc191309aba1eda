// Retention: deletes ended runs by the rules of the settings. First the runs that ended long ago, then the oldest ones
// until all run folders together fit into the limit. Never deletes a run that has not ended, or whose session another
// run uses.
import { lstat } from 'node:fs/promises';
import { sep } from 'node:path';
import { listFolder } from '../files/list-folder.js';
import type { OnFailure } from '../kernel/log.js';
import type { Timers } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import { deleteRun, type DeleteDeps } from './delete-run.js';
import { everyRun } from '../journal/every-run.js';
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

interface EndedRun {
  readonly runId: string;
  readonly endedAt: number;
  // Runs that continue a run use its home, so the run that owns the home is deleted last.
  readonly home: string | null;
  readonly ownsHome: boolean;
}

// Resolves to the ids of the deleted runs. A run that cannot be deleted is reported and does not stop the sweep.
export async function sweep(
  deps: DeleteDeps,
  rules: RetentionRules,
  { signal, onFailure }: SweepOptions,
): Promise<string[]> {
  const { ended_after_days: days, max_bytes: limit } = rules;
  if (days === undefined && limit === undefined) return [];
  const { ended, all, homes } = await listRuns(deps, onFailure);
  const sweeper = new Sweeper(deps, homes, onFailure);
  const since = days === undefined ? -Infinity : deps.clock.now() - days * DAY_MS;
  await sweeper.delete(ended, ({ endedAt }) => endedAt < since && !signal.aborted);
  if (limit !== undefined) {
    const sizes = new Map<string, number>();
    for (const runId of all)
      if (!sweeper.deleted.has(runId) && !signal.aborted)
        sizes.set(runId, await sizeOf(runFolder(deps.dataDir, runId).path));
    let total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
    sweeper.onDeleted = (runId) => (total -= sizes.get(runId) ?? 0);
    // Deleting a run whose files are on the disk of another host frees no space here.
    const isHere = (runId: string): boolean => deps.files.layout !== 'local' || (sizes.get(runId) ?? 0) > 0;
    await sweeper.delete(
      ended.filter(({ runId }) => !sweeper.deleted.has(runId) && isHere(runId)),
      () => total > limit && !signal.aborted,
    );
  }
  return [...sweeper.deleted];
}

// Lists the ended runs, those that ended first come first.
async function listRuns(
  deps: DeleteDeps,
  onFailure: OnFailure,
): Promise<{ ended: EndedRun[]; all: string[]; homes: Map<string | null, number> }> {
  const ended: EndedRun[] = [];
  const all: string[] = [];
  // How many runs use each home.
  const homes = new Map<string | null, number>();
  for await (const { run_id: runId, status, updated_at: endedAt, spec } of everyRun(deps.store, onFailure)) {
    all.push(runId);
    homes.set(spec.home, (homes.get(spec.home) ?? 0) + 1);
    if (isTerminal(status))
      ended.push({ runId, endedAt, home: spec.home, ownsHome: spec.home !== null && spec.continue_from === undefined });
  }
  return { ended: ended.toSorted((a, b) => a.endedAt - b.endedAt || (a.runId < b.runId ? -1 : 1)), all, homes };
}

class Sweeper {
  readonly deleted = new Set<string>();
  readonly #deps: DeleteDeps;
  readonly #homes: Map<string | null, number>;
  readonly #onFailure: OnFailure;
  onDeleted: (runId: string) => void = () => {};

  constructor(deps: DeleteDeps, homes: Map<string | null, number>, onFailure: OnFailure) {
    this.#deps = deps;
    this.#homes = homes;
    this.#onFailure = onFailure;
  }

  // A run that was kept because other runs use its home is tried again after one of them was deleted.
  async delete(candidates: readonly EndedRun[], isWanted: (run: EndedRun) => boolean): Promise<void> {
    const kept = new Map<string | null, EndedRun>();
    for (const run of candidates) {
      if (!isWanted(run)) continue;
      const outcome = await this.#deleteOne(run);
      const owner = kept.get(run.home);
      if (outcome === 'in_use') kept.set(run.home, run);
      else if (outcome === 'deleted' && owner && isWanted(owner) && (await this.#deleteOne(owner)) === 'deleted')
        kept.delete(run.home);
      // Lets other work of this process run between two deletions.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #deleteOne({ runId, home, ownsHome }: EndedRun): Promise<'deleted' | 'in_use' | 'failed'> {
    const users = this.#homes.get(home) ?? 0;
    // Not even tried: a deletion renames the folder briefly, and an agent may be working in it.
    if (ownsHome && users > 1) return 'in_use';
    try {
      await deleteRun(this.#deps, runId, { isRunHere: false, by: BY_RETENTION, onFailure: this.#onFailure });
      this.deleted.add(runId);
      this.#homes.set(home, users - 1);
      this.onDeleted(runId);
      return 'deleted';
    } catch (error) {
      if (error instanceof RequestError && error.code === 'SESSION_IN_USE') return 'in_use';
      // Another caller deleted the run first.
      if (!(error instanceof RequestError && error.code === 'RUN_NOT_FOUND')) this.#onFailure(runId, error);
      return 'failed';
    }
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
