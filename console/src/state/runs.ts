// A list of runs that stays true: what the server has for a filter, page by page, and each change as it comes. A run
// keeps its place, also when it stops matching; nothing but a new list, or that it was deleted, takes it away.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { ParleyError, RunFilter, RunView } from '../../../src/client/index.js';
import { lookSoon } from './inbox-looks.js';
import { client, lost, messageOf, open } from './server.js';

export type Filter = Pick<RunFilter, 'status' | 'engine' | 'label'>;

export interface RunList {
  // Newest first; null until the first are there.
  readonly runs: ReadonlySignal<readonly RunView[] | null>;
  readonly hasMore: ReadonlySignal<boolean>;
  readonly isLoading: ReadonlySignal<boolean>;
  // Every change is told at this moment.
  readonly isLive: ReadonlySignal<boolean>;
  readonly problem: ReadonlySignal<string | null>;
  loadMore(): Promise<void>;
  // Asks the server again, after a problem.
  reload(): Promise<void>;
  // Keeps it true from now on. Answers how to stop that; what is known stays.
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
  // What changed while a list was on its way, which may be older; null: it was deleted.
  let changed = new Map<string, RunView | null>();
  let latest = 0;

  // What was asked later is what counts: an older answer may still be on its way.
  async function ask(work: (isLatest: () => boolean) => Promise<void>): Promise<void> {
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

  // As many as were shown before, so that nobody is thrown back to the first page.
  const reload = (): Promise<void> =>
    ask(async (isLatest) => {
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
        else take(run);
      }
    });

  const loadMore = (): Promise<void> =>
    ask(async (isLatest) => {
      if (cursor.value === null) return;
      const { runs, next_cursor: next } = await client.list({ ...filter, limit: PAGE, cursor: cursor.value });
      if (!isLatest()) return;
      cursor.value = next;
      for (const run of runs) if (changed.get(run.run_id) !== null) take(run, true);
    });

  function take(run: RunView, isListed = false): void {
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

  // It will come when more are loaded.
  function isBelow({ run_id: id }: RunView): boolean {
    return cursor.value !== null && id < cursor.value;
  }

  function missed(error: ParleyError): void {
    lost(error);
    isLive.value = false;
    // Without its changes, the list is still worth having.
    if (known.value === null && !isLoading.value) void reload();
  }

  async function follow(signal: AbortSignal): Promise<void> {
    for await (const change of client.runChanges({ signal, onReconnect: missed, onOpen: open })) {
      if (change.type === 'ready') {
        isLive.value = true;
        void reload();
      } else if (change.type === 'run') {
        if (isLoading.value) changed.set(change.run.run_id, change.run);
        take(change.run);
        lookSoon();
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

// Not tried again by itself: a problem is shown at once, with a button that tries again.
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
