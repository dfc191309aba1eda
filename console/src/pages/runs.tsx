// All runs, newest first, as they change: found by state, engine, label and words, opened by a click or a key.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Link } from '../parts/link.js';
import { RunsTable } from '../parts/runs-table.js';
import { STATE_NAMES, stateWord } from '../parts/state-badge.js';
import { loadEngines } from '../state/engines.js';
import { useAnswerKeys } from '../state/keys.js';
import { persist } from '../state/persist.js';
import { query, refine } from '../state/router.js';
import { openRunList, type Filter, type RunList } from '../state/runs.js';
import { mayOperate } from '../state/server.js';
import './runs.css';

const LABEL = /^[^=]+=/;

export function RunsPage(): JSX.Element {
  const { filter, text, problem } = filterOf(query.value);
  const list = useRunList(filter);
  useAnswerKeys({ move, card: () => document.activeElement?.closest<HTMLElement>('[data-run]') ?? null });
  const all = list.runs.value;
  const words = text.trim().toLowerCase();
  const runs = all && (words === '' ? all : all.filter(({ prompt }) => prompt.toLowerCase().includes(words)));
  const isFiltered = words !== '' || Object.keys(filter).length > 0;
  return (
    <div class="runs wide">
      <h1>Runs</h1>
      <Filters filter={filter} text={text} problem={problem} />
      <Summary list={list} shown={runs?.length ?? 0} known={all?.length ?? 0} isFiltered={isFiltered} />
      {list.problem.value !== null && (
        <p class="bad" role="alert">
          The list could not be loaded: {list.problem.value}{' '}
          <button type="button" disabled={list.isLoading.value} onClick={() => void list.reload()}>
            Try again
          </button>
        </p>
      )}
      {runs && runs.length > 0 && <RunsTable runs={runs} filter={filter} />}
      {runs?.length === 0 && <Nothing isFiltered={isFiltered} isMore={list.hasMore.value} />}
      {list.hasMore.value && (
        <p class="more">
          <button type="button" disabled={list.isLoading.value} onClick={() => void list.loadMore()}>
            {list.isLoading.value ? 'Loading…' : 'Load more'}
          </button>
        </p>
      )}
    </div>
  );
}

function filterOf(params: URLSearchParams): {
  readonly filter: Filter;
  readonly text: string;
  readonly problem: string | null;
} {
  const [status, engine, label] = ['status', 'engine', 'label'].map((name) => params.get(name) ?? undefined);
  const state = STATE_NAMES.find((name) => name === status);
  const isLabel = label !== undefined && LABEL.test(label);
  const filter = {
    ...(state === undefined ? {} : { status: state }),
    ...(engine === undefined ? {} : { engine }),
    ...(isLabel ? { label } : {}),
  };
  return { filter, text: params.get('text') ?? '', problem: label !== undefined && !isLabel ? label : null };
}

// The list of a filter, for as long as somebody looks at it: a browser has only a few connections for all its tabs.
function useRunList({ status, engine, label }: Filter): RunList {
  const list = useMemo(
    () =>
      openRunList({
        ...(status === undefined ? {} : { status }),
        ...(engine === undefined ? {} : { engine }),
        ...(label === undefined ? {} : { label }),
      }),
    [status, engine, label],
  );
  const isSeen = useVisible();
  useEffect(() => (isSeen ? list.watch() : undefined), [list, isSeen]);
  return list;
}

function useVisible(): boolean {
  const [isVisible, set] = useState(document.visibilityState === 'visible');
  useEffect(() => {
    const look = (): void => set(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return isVisible;
}

// j and k go through the links of the runs, so that Enter is what it always is.
function move(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('[data-run] .open')];
  const at = links.findIndex((link) => link === document.activeElement);
  const to = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
  to?.focus({ preventScroll: true });
  to?.closest('[data-run]')?.scrollIntoView({ block: 'nearest' });
}

function Filters({
  filter,
  text,
  problem,
}: {
  readonly filter: Filter;
  readonly text: string;
  readonly problem: string | null;
}): JSX.Element {
  const [engines, setEngines] = useState<readonly string[]>([]);
  const [label, setLabel] = useState(problem ?? filter.label ?? '');
  useEffect(() => {
    const leave = new AbortController();
    persist(loadEngines, leave.signal).then(
      (all) => setEngines(all?.map(({ name }) => name) ?? []),
      () => setEngines([]),
    );
    return () => leave.abort();
  }, []);
  useEffect(() => setLabel(problem ?? filter.label ?? ''), [filter.label, problem]);
  // What is in the address stands in the box, also when the server does not know it.
  const names = useMemo(
    () => [...new Set([...engines, ...(filter.engine === undefined ? [] : [filter.engine])])],
    [engines, filter.engine],
  );
  const choose = (event: Event): void => {
    event.preventDefault();
    refine({ label: label.trim().replace(/\s*=\s*/, '=') });
  };
  return (
    <form class="filters" role="search" aria-label="Runs" onSubmit={choose}>
      <label>
        State
        <select value={filter.status ?? ''} onChange={(event) => refine({ status: event.currentTarget.value })}>
          <option value="">any</option>
          {STATE_NAMES.map((state) => (
            <option key={state} value={state}>
              {stateWord(state)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Engine
        <select value={filter.engine ?? ''} onChange={(event) => refine({ engine: event.currentTarget.value })}>
          <option value="">any</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Label
        <input
          type="text"
          value={label}
          placeholder="name=value"
          aria-invalid={problem !== null}
          aria-describedby={problem === null ? undefined : 'label-problem'}
          onInput={(event) => setLabel(event.currentTarget.value)}
          onChange={choose}
        />
        {problem !== null && (
          <span id="label-problem" class="bad" role="alert">
            A label is name=value.
          </span>
        )}
      </label>
      <label class="words">
        Words of the prompt
        <input
          type="search"
          value={text}
          placeholder="in what is loaded"
          onInput={(event) => refine({ text: event.currentTarget.value })}
        />
      </label>
    </form>
  );
}

function Summary({
  list,
  shown,
  known,
  isFiltered,
}: {
  readonly list: RunList;
  readonly shown: number;
  readonly known: number;
  readonly isFiltered: boolean;
}): JSX.Element {
  const isKnown = list.runs.value !== null;
  return (
    <p class="summary dim">
      <span role="status">
        {isKnown
          ? `${shown === known ? shown : `${shown} of ${known}`} ` +
            `${known === 1 ? 'run' : 'runs'}${list.hasMore.value ? ' loaded, there are more' : ''}`
          : list.problem.value === null
            ? 'Loading runs…'
            : ''}
      </span>
      {isKnown && (
        <span class={list.isLive.value ? 'good' : 'warn'}>
          {list.isLive.value ? '● live' : '○ not live: connecting again'}
        </span>
      )}
      {isFiltered && (
        <button
          type="button"
          class="quiet"
          onClick={() => refine({ status: null, engine: null, label: null, text: null })}
        >
          Show all
        </button>
      )}
      <span class="hint">
        <kbd>j</kbd> <kbd>k</kbd> choose, <kbd>o</kbd> or <kbd>⏎</kbd> open
      </span>
    </p>
  );
}

function Nothing({ isFiltered, isMore }: { readonly isFiltered: boolean; readonly isMore: boolean }): JSX.Element {
  if (isFiltered)
    return (
      <div class="empty">
        <p>No run {isMore ? 'of those that are loaded ' : ''}is like that.</p>
        <p>Ask for less, or {isMore ? 'load more' : 'look at all of them'}.</p>
      </div>
    );
  return (
    <div class="empty">
      <p>No run was started here yet.</p>
      {mayOperate() ? (
        <p>
          <Link to="/new" class="button primary">
            Start a run
          </Link>
        </p>
      ) : (
        <p>An operator can start one; it appears here by itself.</p>
      )}
      <p>
        From a terminal: <code>parley run rehearsal "Set up the storage" --interactive</code>
      </p>
    </div>
  );
}
