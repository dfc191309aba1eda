// Deletes ended runs by themselves: those that ended long ago, then the oldest until what is left fits. A run that has
// not ended is never touched, nor one whose session another run uses.
import { lstat } from 'node:fs/promises';
import { sep } from 'node:path';
import { listFolder } from '../files/list-folder.js';
import type { Timers } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import { deleteRun } from './delete-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { everyRun } from '../journal/every-run.js';
import { runFolder } from '../journal/run-folder.js';

const DAY_MS = 24 * 3600 * 1000;
const SWEEP_MS = 3600 * 1000;
const BY_RETENTION = { actor: { kind: 'system', name: 'retention' }, address: null } as const;

export interface RetentionRules {
  readonly ended_after_days?: number;
  // Of all run folders together.
  readonly max_bytes?: number;
}

type OnFailure = (runId: string, error: unknown) => void;

interface Ended {
  readonly runId: string;
  readonly at: number;
  // Those that continue a run live in its home; the one that it was made for goes last.
  readonly home: string | null;
  readonly owns: boolean;
}

// Answers the runs that it deleted. What cannot be deleted is told and keeps nothing else from it.
export async function sweep(
  deps: OrchestratorDeps,
  rules: RetentionRules,
  stopped: () => boolean,
  onFailure: OnFailure,
): Promise<string[]> {
  const { ended_after_days: days, max_bytes: limit } = rules;
  if (days === undefined && limit === undefined) return [];
  const { ended, all, homes } = await listRuns(deps, onFailure);
  const broom = new Broom(deps, homes, onFailure);
  const since = days === undefined ? -Infinity : deps.clock.now() - days * DAY_MS;
  await broom.delete(ended, ({ at }) => at < since && !stopped());
  if (limit !== undefined) {
    const sizes = new Map<string, number>();
    for (const runId of all)
      if (!broom.deleted.has(runId) && !stopped()) sizes.set(runId, await sizeOf(runFolder(deps.dataDir, runId).path));
    let total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
    broom.onDeleted = (runId) => (total -= sizes.get(runId) ?? 0);
    // What lies on the disk of another host makes no room here.
    const isHere = (runId: string): boolean => deps.cluster?.files !== 'local' || (sizes.get(runId) ?? 0) > 0;
    await broom.delete(
      ended.filter(({ runId }) => !broom.deleted.has(runId) && isHere(runId)),
      () => total > limit && !stopped(),
    );
  }
  return [...broom.deleted];
}

// The ended ones by when they ended, the longest ago first.
async function listRuns(
  deps: OrchestratorDeps,
  onFailure: OnFailure,
): Promise<{ ended: Ended[]; all: string[]; homes: Map<string | null, number> }> {
  const ended: Ended[] = [];
  const all: string[] = [];
  // How many runs live in each.
  const homes = new Map<string | null, number>();
  for await (const { run_id: runId, status, updated_at: at, spec } of everyRun(deps.store, onFailure)) {
    all.push(runId);
    homes.set(spec.home, (homes.get(spec.home) ?? 0) + 1);
    if (isTerminal(status))
      ended.push({ runId, at, home: spec.home, owns: spec.home !== null && spec.continue_from === undefined });
  }
  return { ended: ended.toSorted((a, b) => a.at - b.at || (a.runId < b.runId ? -1 : 1)), all, homes };
}

class Broom {
  readonly deleted = new Set<string>();
  readonly #deps: OrchestratorDeps;
  readonly #homes: Map<string | null, number>;
  readonly #onFailure: OnFailure;
  onDeleted: (runId: string) => void = () => {};

  constructor(deps: OrchestratorDeps, homes: Map<string | null, number>, onFailure: OnFailure) {
    this.#deps = deps;
    this.#homes = homes;
    this.#onFailure = onFailure;
  }

  // One that had to stay because others use its home is tried again when one of those is gone.
  async delete(candidates: readonly Ended[], wanted: (run: Ended) => boolean): Promise<void> {
    const kept = new Map<string | null, Ended>();
    for (const run of candidates) {
      if (!wanted(run)) continue;
      const outcome = await this.#deleteOne(run);
      const owner = kept.get(run.home);
      if (outcome === 'in_use') kept.set(run.home, run);
      else if (outcome === 'deleted' && owner && wanted(owner) && (await this.#deleteOne(owner)) === 'deleted')
        kept.delete(run.home);
      // Others want to work too.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #deleteOne({ runId, home, owns }: Ended): Promise<'deleted' | 'in_use' | 'failed'> {
    const living = this.#homes.get(home) ?? 0;
    // Not even tried: for a moment its folder would not be there, and an agent may be at work in it.
    if (owns && living > 1) return 'in_use';
    try {
      await deleteRun(this.#deps, runId, { isPlayed: false, by: BY_RETENTION, onFailure: this.#onFailure });
      this.deleted.add(runId);
      this.#homes.set(home, living - 1);
      this.onDeleted(runId);
      return 'deleted';
    } catch (error) {
      if (error instanceof RequestError && error.code === 'SESSION_IN_USE') return 'in_use';
      // Somebody else was first.
      if (!(error instanceof RequestError && error.code === 'RUN_NOT_FOUND')) this.#onFailure(runId, error);
      return 'failed';
    }
  }
}

// What files say they hold; links are not followed. What goes away meanwhile, or cannot be read, counts as nothing.
async function sizeOf(path: string | Buffer): Promise<number> {
  let bytes = 0;
  try {
    for await (const entries of listFolder(path, 1000)) {
      for (const { name, kind } of entries) {
        const inside = Buffer.concat([Buffer.from(path), Buffer.from(sep), name]);
        bytes +=
          kind === 'folder'
            ? await sizeOf(inside)
            : await lstat(inside).then(
                ({ size }) => size,
                () => 0,
              );
      }
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
  }
  return bytes;
}

// Now and every hour, until it is closed.
export function sweepHourly(timers: Timers, work: () => Promise<unknown>): { close(): Promise<void> } {
  let closing = false;
  let cancel: (() => void) | null = null;
  let working = Promise.resolve();
  const again = (): void => {
    working = work().then(() => {
      if (!closing) cancel = timers.set(SWEEP_MS, again);
    });
  };
  again();
  return {
    close: async () => {
      closing = true;
      cancel?.();
      await working;
    },
  };
}
