// Figures for those who watch the service: most are counted in the store when they are asked for, so that a restart forgets
// nothing; what only this process knows (streams, latencies, waits that ended) is counted as it happens.
// In parts: the whole of it also loads what measures the process, with OpenTelemetry, and takes longer than the rest of the service.
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import type { Clock } from '../kernel/clock.js';
import { STATES } from '../run/statechart.js';
import type { Orchestrator } from '../orchestrator/orchestrator.js';
import type { ProfileTotals, Store } from '../store/store.js';
import type { Streams } from './streams.js';

const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10];
// From a minute to a week.
const WAITS = [60, 600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600];
const STORE_SECONDS = [0.0005, 0.001, 0.005, 0.02, 0.1, 1];

export interface Metrics {
  answered(method: string, route: string, status: number, ms: number): void;
  text(): Promise<string>;
  readonly contentType: string;
  close(): void;
}

export function createMetrics({ store, clock, orchestrator }: { readonly store: Store; readonly clock: Clock; readonly orchestrator: Pick<Orchestrator, 'residents'> }, streams: Streams): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Histogram({ name: 'parley_http_request_seconds', help: 'Answered requests by route and status', labelNames: ['method', 'route', 'status'], buckets: SECONDS, registers });
  const waits = new Histogram({ name: 'parley_blocked_on_person_seconds', help: 'How long questions waited that were resolved since the start', labelNames: ['resolution'], buckets: WAITS, registers });
  const latency = new Histogram({ name: 'parley_store_commit_seconds', help: 'How long it takes to make a change durable', buckets: STORE_SECONDS, registers });
  gauge('parley_runs', 'Runs that are kept, by state', ['state'], async (set) => {
    const counts = await store.countRuns();
    for (const state of STATES) set({ state }, counts[state]);
  });
  gauge('parley_pending_interactions', 'Questions that wait, and those of them that are overdue', ['overdue'], async (set) => {
    const { pending, overdue } = await store.countPending(clock.now());
    set({ overdue: 'true' }, overdue);
    set({ overdue: 'false' }, pending - overdue);
  });
  gauge('parley_oldest_pending_seconds', 'How long the oldest question has waited', [], async (set) => {
    const [oldest] = await store.summaries.listPending({ limit: 1 });
    set({}, oldest ? (clock.now() - oldest.asked_at) / 1000 : 0);
  });
  gauge('parley_webhook_deliveries', 'Notifications that still have to arrive, and those that were given up', ['state'], async (set) => {
    for (const [state, count] of Object.entries(await store.countDeliveries())) set({ state }, count);
  });
  // Summed up once for all the figures that are made of them.
  let turns: Promise<readonly ProfileTotals[]> = Promise.resolve([]);
  gauge('parley_streams', 'Open streams of events', [], async (set) => set({}, streams.size));
  gauge('parley_resident_processes', 'Processes that are kept for runs that wait', [], async (set) => set({}, orchestrator.residents));
  for (const [name, help, value] of PROFILE_GAUGES) gauge(name, help, ['engine', 'profile'], async (set) => {
    for (const totals of await turns) set({ engine: totals.engine, profile: totals.profile }, value(totals));
  });
  for (const [name, help, counts] of REASON_GAUGES) gauge(name, help, ['engine', 'profile', 'reason'], async (set) => {
    for (const totals of await turns) for (const [reason, count] of Object.entries(counts(totals))) set({ engine: totals.engine, profile: totals.profile, reason }, count);
  });
  const changes = new Counter({ name: 'parley_state_changes_total', help: 'Changes of state since the start, by the state that was entered', labelNames: ['state'], registers });
  const stop = store.onCommitted(({ status, resolved, origin, ms }) => {
    // Every process counts its own, so that they can be added up.
    if (origin !== 'here') return;
    latency.observe(ms / 1000);
    if (status !== undefined) changes.inc({ state: status });
    if (resolved !== undefined) void observeWait(resolved);
  });

  async function observeWait(id: string): Promise<void> {
    const interaction = await store.loadInteraction(id);
    if (interaction?.resolution) waits.observe({ resolution: interaction.state }, (interaction.resolution.at - interaction.asked_at) / 1000);
  }

  function gauge<L extends string>(name: string, help: string, labelNames: L[], collect: (set: (labels: Partial<Record<L, string>>, value: number) => void) => Promise<void>): void {
    const made: Gauge<L> = new Gauge({
      name, help, labelNames, registers,
      collect: async () => {
        made.reset();
        await collect((labels, value) => made.set(labels, value));
      },
    });
  }

  return {
    answered: (method, route, status, ms) => requests.observe({ method, route, status: String(status) }, ms / 1000),
    text: () => {
      turns = store.sumTurns();
      return registry.metrics();
    },
    contentType: registry.contentType,
    close: stop,
  };
}

const PROFILE_GAUGES: readonly (readonly [string, string, (totals: ProfileTotals) => number])[] = [
  ['parley_turns', 'Turns that ended, of the runs that are kept', ({ turns }) => turns],
  ['parley_parser_units', 'Pieces of output that were read', ({ units }) => units],
  ['parley_parser_hit_rate', 'Share of them that the parser understood', (totals) => totals.hit_rate ?? 1],
  ['parley_parser_fallbacks', 'Pieces that were kept as raw', ({ fallbacks }) => fallbacks],
];
const REASON_GAUGES: readonly (readonly [string, string, (totals: ProfileTotals) => Readonly<Record<string, number>>])[] = [
  ['parley_parser_warnings', 'Oddities of engine output, drift among them, by code', ({ warnings }) => warnings],
  ['parley_unknown_completions', 'Turns whose end could not be judged, by reason', ({ unknown }) => unknown],
];
