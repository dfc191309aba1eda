// All runs, newest first and live. They can be filtered by state, engine, label and words of the prompt.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import { Link } from '../parts/link.js';
import { RunsTable } from '../parts/runs-table.js';
import { STATE_NAMES } from '../parts/state-badge.js';
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
      <h1>{t.pages.runs}</h1>
      <Filters filter={filter} text={text} problem={problem} />
      <Summary list={list} shown={runs?.length ?? 0} known={all?.length ?? 0} isFiltered={isFiltered} />
      {list.problem.value !== null && (
        <p class="bad" role="alert">
          {t.runs.loadFailed(list.problem.value)}{' '}
          <button type="button" disabled={list.isLoading.value} onClick={() => void list.reload()}>
            {t.tryAgain}
          </button>
        </p>
      )}
      {runs && runs.length > 0 && <RunsTable runs={runs} filter={filter} />}
      {runs?.length === 0 && <NoRuns isFiltered={isFiltered} hasMore={list.hasMore.value} />}
      {list.hasMore.value && (
        <p class="more">
          <button type="button" disabled={list.isLoading.value} onClick={() => void list.loadMore()}>
            {list.isLoading.value ? t.loading : t.runs.loadMore}
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

// Watches the list only while the page is visible, because a browser has few connections for all its tabs.
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
    const update = (): void => set(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}

// j and k move the focus through the links of the runs, so that Enter opens them as usual.
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
      (list) => setEngines(list?.engines.map(({ name }) => name) ?? []),
      () => setEngines([]),
    );
    return () => leave.abort();
  }, []);
  useEffect(() => setLabel(problem ?? filter.label ?? ''), [filter.label, problem]);
  // The engine in the address is listed even if the server does not know it.
  const names = useMemo(
    () => [...new Set([...engines, ...(filter.engine === undefined ? [] : [filter.engine])])],
    [engines, filter.engine],
  );
  const choose = (event: Event): void => {
    event.preventDefault();
    refine({ label: label.trim().replace(/\s*=\s*/, '=') });
  };
  return (
    <form class="filters" role="search" aria-label={t.runs.filters} onSubmit={choose}>
      <label>
        {t.runs.state}
        <select value={filter.status ?? ''} onChange={(event) => refine({ status: event.currentTarget.value })}>
          <option value="">{t.runs.any}</option>
          {STATE_NAMES.map((state) => (
            <option key={state} value={state}>
              {t.states[state]}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t.runs.engine}
        <select value={filter.engine ?? ''} onChange={(event) => refine({ engine: event.currentTarget.value })}>
          <option value="">{t.runs.any}</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t.runs.label}
        <input
          type="text"
          value={label}
          placeholder={t.runs.labelExample}
          aria-invalid={problem !== null}
          aria-describedby={problem === null ? undefined : 'label-problem'}
          onInput={(event) => setLabel(event.currentTarget.value)}
          onChange={choose}
        />
        {problem !== null && (
          <span id="label-problem" class="bad" role="alert">
            {t.runs.labelProblem}
          </span>
        )}
      </label>
      <label class="words">
        {t.runs.search}
        <input
          type="search"
          value={text}
          placeholder={t.runs.searchHelp}
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
        {isKnown ? t.runs.count(shown, known, list.hasMore.value) : list.problem.value === null ? t.runs.loading : ''}
      </span>
      {isKnown && (
        <span class={list.isLive.value ? 'good' : 'warn'}>{list.isLive.value ? t.runs.live : t.runs.notLive}</span>
      )}
      {isFiltered && (
        <button
          type="button"
          class="quiet"
          onClick={() => refine({ status: null, engine: null, label: null, text: null })}
        >
          {t.runs.clear}
        </button>
      )}
      <span class="hint">
        {t.runs.keys((name) => (
          <kbd>{name}</kbd>
        ))}
      </span>
    </p>
  );
}

function NoRuns({ isFiltered, hasMore }: { readonly isFiltered: boolean; readonly hasMore: boolean }): JSX.Element {
  if (isFiltered)
    return (
      <div class="empty">
        <p>{hasMore ? t.runs.noLoadedMatch : t.runs.noMatch}</p>
        <p>{hasMore ? t.runs.noLoadedMatchHelp : t.runs.noMatchHelp}</p>
      </div>
    );
  return (
    <div class="empty">
      <p>{t.runs.empty}</p>
      {mayOperate() ? (
        <p>
          <Link to="/new" class="button primary">
            {t.runs.start}
          </Link>
        </p>
      ) : (
        <p>{t.runs.emptyHelp}</p>
      )}
      <p>{t.runs.fromTerminal(<code>{t.runs.exampleCommand}</code>)}</p>
    </div>
  );
}
