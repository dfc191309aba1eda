// Lists runs newest first, in short form, so that a page is small however long the prompts are. A run with a damaged
// row is reported by its id and left out.
import { unlessDamaged, type DamagedDataError } from '../kernel/stored-json.js';
import type { RunFilter, Store } from '../store/store.js';
import type { RunSummary } from '../store/summary-reader.js';

const PAGE = 500;

export type OnDamaged = (runId: string, error: DamagedDataError) => void;

// `ids` includes damaged runs.
export async function listReadable(
  store: Store,
  filter: RunFilter,
  onDamaged: OnDamaged,
): Promise<{ readonly runs: readonly RunSummary[]; readonly ids: readonly string[] }> {
  const all = await unlessDamaged(store.summaries.listRuns(filter));
  if (all) return { runs: all, ids: all.map(({ run_id: id }) => id) };
  const ids = await store.listRunIds(filter);
  const runs: RunSummary[] = [];
  for (const id of ids) {
    const run = await unlessDamaged(store.summaries.loadRun(id), (damage) => onDamaged(id, damage));
    if (run) runs.push(run);
  }
  return { runs, ids };
}

// Checks by the id alone, so that damaged runs count as stored.
export async function isStored(store: Store, runId: string): Promise<boolean> {
  return (await store.listByPrefix(runId, 1)).includes(runId);
}

// Yields all runs, read page by page. Load a run by its id for the parts that the short form leaves out.
export async function* everyRun(
  store: Store,
  onDamaged: OnDamaged,
  filter: Pick<RunFilter, 'status'> = {},
): AsyncGenerator<RunSummary> {
  for (let before: { readonly before?: string } = {}; ;) {
    const { runs, ids } = await listReadable(store, { ...filter, ...before, limit: PAGE }, onDamaged);
    yield* runs;
    const last = ids.at(-1);
    if (last === undefined) return;
    before = { before: last };
  }
}

// Includes damaged runs.
export async function* everyRunId(store: Store): AsyncGenerator<string> {
  for (
    let ids = await store.listRunIds({ limit: PAGE });
    ids.length > 0;
    ids = await store.listRunIds({ limit: PAGE, before: ids.at(-1) ?? '' })
  )
    yield* ids;
}
