// Runs as they are listed, newest first. One whose row is damaged takes no other with it: it is told by its id and left out.
import { unlessDamaged, type DamagedDataError } from '../kernel/stored-json.js';
import type { RunFilter, RunRecord, Store } from '../store/store.js';

const PAGE = 500;

export type OnDamaged = (runId: string, error: DamagedDataError) => void;

// `ids` are of all that were found, also of those that cannot be read.
export async function listReadable(store: Store, filter: RunFilter, onDamaged: OnDamaged): Promise<{ readonly runs: readonly RunRecord[]; readonly ids: readonly string[] }> {
  const all = await unlessDamaged(store.listRuns(filter));
  if (all) return { runs: all, ids: all.map(({ run_id: id }) => id) };
  const ids = await store.listRunIds(filter);
  const runs: RunRecord[] = [];
  for (const id of ids) {
    const run = await unlessDamaged(store.loadRun(id), (damage) => onDamaged(id, damage));
    if (run) runs.push(run);
  }
  return { runs, ids };
}

// Also one that cannot be read.
export async function isStored(store: Store, runId: string): Promise<boolean> {
  let isDamaged = false;
  return (await unlessDamaged(store.loadRun(runId), () => (isDamaged = true))) !== null || isDamaged;
}

// All there are, however many: read page by page.
export async function* everyRun(store: Store, onDamaged: OnDamaged, filter: Pick<RunFilter, 'status'> = {}): AsyncGenerator<RunRecord> {
  for (let before: { readonly before?: string } = {}; ; ) {
    const { runs, ids } = await listReadable(store, { ...filter, ...before, limit: PAGE }, onDamaged);
    yield* runs;
    const last = ids.at(-1);
    if (last === undefined) return;
    before = { before: last };
  }
}

// Those that cannot be read, too.
export async function* everyRunId(store: Store): AsyncGenerator<string> {
  for (let ids = await store.listRunIds({ limit: PAGE }); ids.length > 0; ids = await store.listRunIds({ limit: PAGE, before: ids.at(-1) ?? '' })) yield* ids;
}
