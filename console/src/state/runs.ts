// A live list of runs for a filter, loaded page by page. A run keeps its place even when it no longer matches. Only a
// new list or its deletion removes it.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { ParleyError, RunFilter, RunView } from '../../../src/client/index.js';
import { pollSoon } from './inbox-polling.js';
import { client, lost, messageOf, open } from './server.js';

export type Filter = Pick<RunFilter, 'status' | 'engine' | 'label'>;

export interface RunList {
  // Newest first; null until the first page is loaded.
  readonly runs: ReadonlySignal<readonly RunView[] | null>;
  readonly hasMore: ReadonlySignal<boolean>;
  readonly isLoading: ReadonlySignal<boolean>;
  // Whether changes are arriving.
  readonly isLive: ReadonlySignal<boolean>;
  readonly problem: ReadonlySignal<string | null>;
  loadMore(): Promise<void>;
  // Loads the list again, after a problem.
  reload(): Promise<void>;
  // Applies changes from now on. Returns a function that stops this and keeps the list.
  watch(): () => void;
}

const PAGE = 50;
const MOST = 500;

export function openRunList(filter: Filter): RunList {
  const known = signal<ReadonlyMap<string, RunView> | null>(null);
  const cursor = signal<string | null>(null);
  const isLoading = signal(false);
  const isLive = signal(false);
  const problem = signal<string | null>(null);
  // Changes that arrived while a possibly older list was loading; null for a deleted run.
  let changed = new Map<string, RunView | null>();
  let latest = 0;

  // Only the latest request counts. The response to an earlier one may still arrive.
  async function load(work: (isLatest: () => boolean) => Promise<void>): Promise<void> {
    const mine = (latest += 1);
    const isLatest = (): boolean => mine === latest;
    isLoading.value = true;
    try {
      await work(isLatest);
      if (isLatest()) problem.value = null;
    } catch (error) {
      if (isLatest()) problem.value = messageOf(error);
    } finally {
      if (isLatest()) isLoading.value = false;
    }
  }

  // Loads as many runs as were shown before, so that the list does not jump back to the first page.
  const reload = (): Promise<void> =>
    load(async (isLatest) => {
      const wanted = known.value?.size ?? 0;
      changed = new Map();
      const runs: RunView[] = [];
      let next: string | null = null;
      do {
        const page = await listOnce({
          ...filter,
          limit: Math.min(Math.max(wanted - runs.length, PAGE), MOST),
          ...(next === null ? {} : { cursor: next }),
        });
        if (!isLatest()) return;
        runs.push(...page.runs);
        next = page.next_cursor;
      } while (next !== null && runs.length < wanted);
      known.value = new Map(runs.map((run) => [run.run_id, run]));
      cursor.value = next;
      for (const [id, run] of changed) {
        if (run === null) drop(id);
        else addRun(run);
      }
    });

  const loadMore = (): Promise<void> =>
    load(async (isLatest) => {
      if (cursor.value === null) return;
      const { runs, next_cursor: next } = await client.list({ ...filter, limit: PAGE, cursor: cursor.value });
      if (!isLatest()) return;
      cursor.value = next;
      for (const run of runs) if (changed.get(run.run_id) !== null) addRun(run, true);
    });

  function addRun(run: RunView, isListed = false): void {
    const { value } = known;
    if (!value) return;
    const before = value.get(run.run_id);
    if (before ? isNewer(before, run) : !isListed && (!matches(run, filter) || isBelow(run))) return;
    known.value = new Map(value).set(run.run_id, run);
  }

  function drop(id: string): void {
    if (!known.value?.has(id)) return;
    const rest = new Map(known.value);
    rest.delete(id);
    known.value = rest;
  }

  // A run below the loaded pages appears when more are loaded.
  function isBelow({ run_id: id }: RunView): boolean {
    return cursor.value !== null && id < cursor.value;
  }

  function onReconnect(error: ParleyError): void {
    lost(error);
    isLive.value = false;
    // The list is useful even without live changes.
    if (known.value === null && !isLoading.value) void reload();
  }

  async function follow(signal: AbortSignal): Promise<void> {
    for await (const change of client.runChanges({ signal, onReconnect, onOpen: open })) {
      if (change.type === 'ready') {
        isLive.value = true;
        void reload();
      } else if (change.type === 'run') {
        if (isLoading.value) changed.set(change.run.run_id, change.run);
        addRun(change.run);
        pollSoon();
      } else if (change.type === 'gone') {
        if (isLoading.value) changed.set(change.run_id, null);
        drop(change.run_id);
      }
    }
  }

  function watch(): () => void {
    const leaving = new AbortController();
    follow(leaving.signal).catch((error: unknown) => {
      isLive.value = false;
      problem.value = messageOf(error);
    });
    return () => {
      leaving.abort();
      isLive.value = false;
    };
  }

  return {
    runs: computed(() => known.value && [...known.value.values()].toSorted((a, b) => (a.run_id < b.run_id ? 1 : -1))),
    hasMore: computed(() => cursor.value !== null),
    isLoading,
    isLive,
    problem,
    loadMore,
    reload,
    watch,
  };
}

// Without retries: a problem is shown at once, with a button to try again.
type Page = Awaited<ReturnType<typeof client.list>>;

async function listOnce(filter: RunFilter): Promise<Page> {
  const query = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]));
  const response = await client.request('GET', `/v1/runs?${query.toString()}`);
  return (await response.json()) as Page;
}

export function matches({ status, engine, labels }: RunView, filter: Filter): boolean {
  if (filter.status !== undefined && filter.status !== status) return false;
  if (filter.engine !== undefined && filter.engine !== engine) return false;
  if (filter.label === undefined) return true;
  const at = filter.label.indexOf('=');
  return labels[filter.label.slice(0, at)] === filter.label.slice(at + 1);
}

function isNewer(a: RunView, b: RunView): boolean {
  return a.updated_at === b.updated_at ? a.rasp_seq > b.rasp_seq : a.updated_at > b.updated_at;
}
