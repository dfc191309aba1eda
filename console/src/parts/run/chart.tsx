// The state chart of runs, as the server defines it, with the path of this run: its current state, its earlier states
// and how often it was in each.
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { t } from '../../language/language.js';
import { persist } from '../../state/persist.js';
import type { RunFeed } from '../../state/run-feed.js';
import { edgeKey, type State } from '../../state/run-path.js';
import { client } from '../../state/server.js';

interface Contract {
  readonly states: readonly State[];
  readonly edges: readonly { readonly from: State; readonly to: State; readonly on: string }[];
}

const contract = signal<Contract | null>(null);

const [WIDTH, HEIGHT, BOX_W, BOX_H] = [336, 214, 104, 38] as const;
// Active states are on the left, from top to bottom; final states on the right.
const PLACES: Readonly<Record<State, readonly [number, number]>> = {
  queued: [42, 10],
  running: [42, 88],
  waiting_user: [42, 166],
  succeeded: [230, 10],
  failed: [230, 88],
  canceled: [230, 166],
};

export function StateChart({ feed, status }: { readonly feed: RunFeed; readonly status: State }): JSX.Element | null {
  useEffect(() => {
    const leave = new AbortController();
    if (contract.value === null)
      persist(async () => (await (await client.request('GET', '/v1/contract')).json()) as Contract, leave.signal)
        .then((loaded) => loaded && (contract.value = loaded))
        .catch(() => {});
    return () => leave.abort();
  }, []);
  void feed.version.value;
  const { visits, edges: taken } = feed.model.path;
  if (contract.value === null) return null;
  const pairs = new Map(
    contract.value.edges
      .filter(({ from, to }) => from in PLACES && to in PLACES)
      .map(({ from, to }) => [edgeKey(from, to), { from, to }]),
  );
  const path = [...taken]
    .flatMap(([key, count]) => {
      const pair = pairs.get(key);
      return pair ? [t.run.step(t.states[pair.from], t.states[pair.to], count)] : [];
    })
    .join(', ');
  // Taken edges are drawn above the others.
  const drawn = [...pairs].toSorted(([a], [b]) => Number(taken.has(a)) - Number(taken.has(b)));
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t.run.chart(t.states[status], path)}>
      <defs>
        <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path d="M0 0 8 4 0 8z" />
        </marker>
        <marker id="tip-taken" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
          <path d="M0 0 8 4 0 8z" />
        </marker>
      </defs>
      {drawn.map(([key, { from, to }]) => (
        <Edge key={key} from={from} to={to} count={taken.get(key) ?? 0} />
      ))}
      {contract.value.states
        .filter((state) => state in PLACES)
        .map((state) => (
          <Place key={state} state={state} isNow={state === status} count={visits.get(state) ?? 0} />
        ))}
    </svg>
  );
}

function Place({
  state,
  isNow,
  count,
}: {
  readonly state: State;
  readonly isNow: boolean;
  readonly count: number;
}): JSX.Element {
  const [x, y] = PLACES[state];
  return (
    <g class={`place ${state}${isNow ? ' now' : ''}${count > 0 ? ' been' : ''}`}>
      <rect x={x} y={y} width={BOX_W} height={BOX_H} rx="9" />
      <text x={x + BOX_W / 2} y={y + 24} text-anchor="middle">
        {t.states[state]}
      </text>
      {count > 1 && (
        <>
          <circle cx={x + BOX_W} cy={y} r="9" />
          <text class="count-of" x={x + BOX_W} y={y + 4} text-anchor="middle">
            {count}
          </text>
        </>
      )}
    </g>
  );
}

function Edge({ from, to, count }: { readonly from: State; readonly to: State; readonly count: number }): JSX.Element {
  const {
    path,
    label: [x, y],
  } = lineOf(from, to);
  return (
    <g class={`edge${count > 0 ? ' taken' : ''}`}>
      <path d={path} marker-end={count > 0 ? 'url(#tip-taken)' : 'url(#tip)'} />
      {count > 1 && (
        <text x={x} y={y} text-anchor="middle">
          {count}×
        </text>
      )}
    </g>
  );
}

function lineOf(from: State, to: State): { readonly path: string; readonly label: readonly [number, number] } {
  const [[x1, y1], [x2, y2]] = [PLACES[from], PLACES[to]];
  const half = BOX_H / 2;
  // Back to the same state: a small loop below.
  if (from === to) return { path: `M${x1 + 30} ${y1 + BOX_H}c0 12 40 12 40 1`, label: [x1 + 50, y1 + BOX_H + 9] };
  if (x1 !== x2) {
    // Each edge starts at its own height, depending on its target.
    const [a, b] = [y1 + half + (y2 - y1) / 14, y2 + half + (y1 - y2) / 14];
    const [from_x, to_x] = [x1 + BOX_W, x2 - 1];
    return {
      path: `M${from_x} ${a}C${from_x + 45} ${a} ${to_x - 45} ${b} ${to_x} ${b}`,
      label: [(from_x + to_x) / 2, (a + b) / 2 - 4],
    };
  }
  if (y2 - y1 > 0 && y2 - y1 < 100)
    return {
      path: `M${x1 + BOX_W / 2} ${y1 + BOX_H}V${y2 - 1}`,
      label: [x1 + BOX_W / 2 + 14, (y1 + BOX_H + y2) / 2 + 4],
    };
  // Back to the beginning, around the left.
  return {
    path: `M${x1} ${y1 + half}C${x1 - 46} ${y1 + half - 20} ${x1 - 46} ${y2 + half + 20} ${x2 - 1} ${y2 + half}`,
    label: [x1 - 26, (y1 + y2) / 2 + half + 4],
  };
}
