// All runs there are, newest first, however many: read page by page.
import type { RunFilter, RunRecord, Store } from '../store/store.js';

const PAGE = 500;

export async function* everyRun(store: Store, filter: Pick<RunFilter, 'status'> = {}): AsyncGenerator<RunRecord> {
  for (let page = await store.listRuns({ ...filter, limit: PAGE }); page.length > 0; page = await store.listRuns({ ...filter, limit: PAGE, before: page.at(-1)?.run_id ?? '' })) yield* page;
}
