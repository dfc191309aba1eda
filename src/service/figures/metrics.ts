// Metrics of the service in Prometheus format. Most are read from the store on request, so a restart forgets nothing;
// streams, latencies, waits, tokens and cost are known to this process alone and are counted as they happen.
import type { Clock } from '../../kernel/clock.js';
import { isTerminal, STATES } from '../../run/statechart.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import type { JournalFlush, ProfileTotals, Store } from '../../store/store.js';
import { CONTENT_TYPE, Counter, Gauge, Histogram, type Labels } from './prometheus.js';
import type { Streams } from '../streams/streams.js';
import { UsageMetrics } from './usage-metrics.js';

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

type Sample = readonly [Labels, number];

interface MetricsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly orchestrator: Pick<Orchestrator, 'residents'>;
}

export function createMetrics({ store, clock, orchestrator }: MetricsDeps, streams: Pick<Streams, 'size'>): Metrics {
  const requests = new Histogram({
    name: 'parley_http_request_seconds',
    help: 'Answered requests by route and status',
    buckets: SECONDS,
  });
  const waits = new Histogram({
    name: 'parley_blocked_on_person_seconds',
    help: 'How long questions waited that were resolved since the start',
    buckets: WAITS,
  });
  const latency = new Histogram({
    name: 'parley_store_commit_seconds',
    help: 'How long it takes to make a change durable',
    buckets: STORE_SECONDS,
  });
  const changes = new Counter({
    name: 'parley_state_changes_total',
    help: 'Changes of state since the start, by the state that was entered',
  });
  const usage = new UsageMetrics();
  const runs = new Gauge({ name: 'parley_runs', help: 'Runs that are kept, by state' });
  const pending = new Gauge({
    name: 'parley_pending_interactions',
    help: 'Questions that wait, and those of them that are overdue',
  });
  const oldest = new Gauge({ name: 'parley_oldest_pending_seconds', help: 'How long the oldest question has waited' });
  const deliveries = new Gauge({
    name: 'parley_webhook_deliveries',
    help: 'Notifications that still have to arrive, and those that were given up',
  });
  const openStreams = new Gauge({ name: 'parley_streams', help: 'Open streams of events' });
  const residents = new Gauge({
    name: 'parley_resident_processes',
    help: 'Processes that are kept for runs that wait',
  });
  const hitRate = new Gauge({
    name: 'parley_parser_hit_rate',
    help: 'Share of the pieces of output that the parser understood',
  });
  const totals = PROFILE_TOTALS.map(([metric, values]) => ({ counter: new Counter(metric), values }));
  const stop = store.onCommitted(({ run_id: runId, journal, status, resolved, origin, ms }) => {
    // Every process counts its own, so that they can be added up.
    if (origin !== 'here') return;
    latency.observe({}, ms / 1000);
    if (status !== undefined) changes.inc({ state: status });
    if (resolved !== undefined) void observeWait(resolved).catch(() => {});
    if (journal && beginsConversation(journal)) usage.began(runId);
    if (journal) usage.add(runId, journal);
    if (status !== undefined && isTerminal(status)) usage.ended(runId);
  });

  async function observeWait(id: string): Promise<void> {
    const interaction = await store.summaries.loadInteraction(id);
    if (interaction?.resolution)
      waits.observe({ resolution: interaction.state }, (interaction.resolution.at - interaction.asked_at) / 1000);
  }

  async function collect(): Promise<void> {
    const counts = await store.countRuns();
    runs.setAll(STATES.map((state): Sample => [{ state }, counts[state]]));
    const { pending: waiting, overdue } = await store.countPending(clock.now());
    pending.setAll([
      [{ overdue: 'true' }, overdue],
      [{ overdue: 'false' }, waiting - overdue],
    ]);
    const [first] = await store.summaries.listPending({ limit: 1 });
    oldest.setAll([[{}, first ? (clock.now() - first.asked_at) / 1000 : 0]]);
    deliveries.setAll(
      Object.entries(await store.countDeliveries()).map(([state, count]): Sample => [{ state }, count]),
    );
    openStreams.setAll([[{}, streams.size]]);
    residents.setAll([[{}, orchestrator.residents]]);
    const turns = await store.sumTurns();
    hitRate.setAll(turns.map(({ engine, profile, hit_rate: rate }): Sample => [{ engine, profile }, rate ?? 1]));
    for (const { counter, values } of totals) counter.setAll(turns.flatMap((profile) => values(profile)));
  }

  const families = [
    requests,
    waits,
    latency,
    changes,
    usage.tokens,
    usage.cost,
    runs,
    pending,
    oldest,
    deliveries,
    openStreams,
    residents,
    hitRate,
    ...totals.map(({ counter }) => counter),
  ];
  return {
    answered: (method, route, status, ms) => requests.observe({ method, route, status: String(status) }, ms / 1000),
    text: async () => {
      await collect();
      return families.map((family) => family.text()).join('\n');
    },
    contentType: CONTENT_TYPE,
    close: stop,
  };
}

// The first event of a run that neither continues nor copies another. In JSON a quote within a text is escaped, so the
// names are members.
function beginsConversation({ rasp: { firstSeq, bytes } }: JournalFlush): boolean {
  return firstSeq === 1 && !bytes.includes('"continue_from":') && !bytes.includes('"fork_from":');
}

// What the store has counted of all turns, by engine and profile.
const PROFILE_TOTALS: readonly (readonly [
  { readonly name: string; readonly help: string },
  (totals: ProfileTotals) => Sample[],
])[] = [
  [{ name: 'parley_turns_total', help: 'Turns that ended' }, (totals) => [[labelsOf(totals), totals.turns]]],
  [
    { name: 'parley_parser_units_total', help: 'Pieces of output that were read' },
    (totals) => [[labelsOf(totals), totals.units]],
  ],
  [
    { name: 'parley_parser_fallbacks_total', help: 'Pieces that were kept as raw' },
    (totals) => [[labelsOf(totals), totals.fallbacks]],
  ],
  [
    { name: 'parley_parser_warnings_total', help: 'Oddities of engine output, drift among them, by code' },
    (totals) => byReason(totals, totals.warnings),
  ],
  [
    { name: 'parley_unknown_completions_total', help: 'Turns whose end could not be judged, by reason' },
    (totals) => byReason(totals, totals.unknown),
  ],
];

function labelsOf({ engine, profile }: ProfileTotals): Labels {
  return { engine, profile };
}

function byReason(totals: ProfileTotals, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([reason, count]): Sample => [{ ...labelsOf(totals), reason }, count]);
}
