// Collects the metrics of the service. Most values are read from the store on request, so they survive a restart;
// state changes, latencies, waits, tokens and cost are counted by this process as they happen.
import type { Clock } from '../../kernel/clock.js';
import { isTerminal, STATES } from '../../run/statechart.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import type { JournalFlush, ProfileTotals, Store } from '../../store/store.js';
import { METRICS } from './metric-list.js';
import { CONTENT_TYPE, Counter, Gauge, Histogram, type Labels } from './prometheus.js';
import type { Streams } from '../streams/streams.js';
import { UsageMetrics } from './usage-metrics.js';

export interface Metrics {
  // Counts a finished response.
  answered(response: { method: string; route: string; status: number; ms: number }): void;
  text(): Promise<string>;
  readonly contentType: string;
  close(): void;
}

interface MetricsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly orchestrator: Pick<Orchestrator, 'residents'>;
}

export function createMetrics({ store, clock, orchestrator }: MetricsDeps, streams: Pick<Streams, 'size'>): Metrics {
  const requests = new Histogram(METRICS.requests);
  const waits = new Histogram(METRICS.waits);
  const commits = new Histogram(METRICS.commits);
  const stateChanges = new Counter(METRICS.stateChanges);
  const usage = new UsageMetrics();
  const runs = new Gauge(METRICS.runs);
  const pending = new Gauge(METRICS.pending);
  const oldestPending = new Gauge(METRICS.oldestPending);
  const deliveries = new Gauge(METRICS.deliveries);
  const openStreams = new Gauge(METRICS.streams);
  const residents = new Gauge(METRICS.residents);
  const hitRate = new Gauge(METRICS.hitRate);
  const turns = new Counter(METRICS.turns);
  const units = new Counter(METRICS.units);
  const fallbacks = new Counter(METRICS.fallbacks);
  const warnings = new Counter(METRICS.warnings);
  const unknownCompletions = new Counter(METRICS.unknownCompletions);
  const stop = store.onCommitted(({ run_id: runId, journal, status, resolved, origin, ms }) => {
    // Each process counts only its own changes, so the values of several processes can be added up.
    if (origin !== 'here') return;
    commits.observe({}, ms / 1000);
    if (status !== undefined) stateChanges.inc({ state: status });
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
    runs.setAll(STATES.map((state) => [{ state }, counts[state]]));
    const { pending: waiting, overdue } = await store.countPending(clock.now());
    pending.setAll([
      [{ overdue: 'true' }, overdue],
      [{ overdue: 'false' }, waiting - overdue],
    ]);
    const [first] = await store.summaries.listPending({ limit: 1 });
    oldestPending.setAll([[{}, first ? (clock.now() - first.asked_at) / 1000 : 0]]);
    deliveries.setAll(Object.entries(await store.countDeliveries()).map(([state, count]) => [{ state }, count]));
    openStreams.setAll([[{}, streams.size]]);
    residents.setAll([[{}, orchestrator.residents]]);
    const profiles = await store.sumTurns();
    hitRate.setAll(profiles.map((profile) => [labelsOf(profile), profile.hit_rate ?? 1]));
    turns.setAll(profiles.map((profile) => [labelsOf(profile), profile.turns]));
    units.setAll(profiles.map((profile) => [labelsOf(profile), profile.units]));
    fallbacks.setAll(profiles.map((profile) => [labelsOf(profile), profile.fallbacks]));
    warnings.setAll(profiles.flatMap((profile) => byReason(profile, profile.warnings)));
    unknownCompletions.setAll(profiles.flatMap((profile) => byReason(profile, profile.unknown)));
  }

  const families = [
    requests,
    waits,
    commits,
    stateChanges,
    usage.tokens,
    usage.cost,
    runs,
    pending,
    oldestPending,
    deliveries,
    openStreams,
    residents,
    hitRate,
    turns,
    units,
    fallbacks,
    warnings,
    unknownCompletions,
  ];
  return {
    answered: ({ method, route, status, ms }) => requests.observe({ method, route, status: String(status) }, ms / 1000),
    text: async () => {
      await collect();
      return families.map((family) => family.text()).join('\n');
    },
    contentType: CONTENT_TYPE,
    close: stop,
  };
}

// Whether this is the first event of a run that neither continues nor forks another. JSON escapes a quote within a
// text, so these names can only be members.
function beginsConversation({ rasp: { firstSeq, bytes } }: JournalFlush): boolean {
  return firstSeq === 1 && !bytes.includes('"continue_from":') && !bytes.includes('"fork_from":');
}

type ProfileLabels = Labels<'engine' | 'profile'>;

function labelsOf({ engine, profile }: ProfileTotals): ProfileLabels {
  return { engine, profile };
}

function byReason(
  totals: ProfileTotals,
  counts: Readonly<Record<string, number>>,
): (readonly [ProfileLabels & Labels<'reason'>, number])[] {
  return Object.entries(counts).map(([reason, count]) => [{ ...labelsOf(totals), reason }, count]);
}
