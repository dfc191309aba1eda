// Every metric of GET /metrics: name, type, labels and help text. The source of docs/reference/metrics.md.
import type { HistogramMetric, Metric } from './prometheus.js';

const REQUEST_SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10];
// From a minute to a week.
const WAIT_SECONDS = [60, 600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600];
const COMMIT_SECONDS = [0.0005, 0.001, 0.005, 0.02, 0.1, 1];

// `since` says what a value covers: 'now' is read on request, 'store' counts all turns, also those of deleted runs, and
// 'start' counts what this process did since its start.
type Listed = (Metric | HistogramMetric) & { readonly since: 'now' | 'store' | 'start' };

export const METRICS = {
  requests: {
    name: 'parley_http_request_seconds',
    type: 'histogram',
    labels: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
    since: 'start',
    help: 'Duration of HTTP requests, by method, route and status',
  },
  waits: {
    name: 'parley_blocked_on_person_seconds',
    type: 'histogram',
    labels: ['resolution'],
    buckets: WAIT_SECONDS,
    since: 'start',
    help: 'How long resolved questions had waited, by the way they were resolved',
  },
  commits: {
    name: 'parley_store_commit_seconds',
    type: 'histogram',
    labels: [],
    buckets: COMMIT_SECONDS,
    since: 'start',
    help: 'How long the store takes to make a change durable',
  },
  stateChanges: {
    name: 'parley_state_changes_total',
    type: 'counter',
    labels: ['state'],
    since: 'start',
    help: 'Changes of the state of runs, by the new state',
  },
  tokens: {
    name: 'parley_tokens_total',
    type: 'counter',
    labels: ['engine', 'kind'],
    since: 'start',
    help:
      'Tokens that engines reported, by engine and kind; cached_input is a part of input, reasoning is a part of ' +
      'output',
  },
  cost: {
    name: 'parley_cost_usd_total',
    type: 'counter',
    labels: ['engine'],
    since: 'start',
    help: 'Cost in US dollars that engines reported',
  },
  runs: { name: 'parley_runs', type: 'gauge', labels: ['state'], since: 'now', help: 'Stored runs, by state' },
  pending: {
    name: 'parley_pending_interactions',
    type: 'gauge',
    labels: ['overdue'],
    since: 'now',
    help: 'Questions that wait for an answer, by whether they are overdue',
  },
  oldestPending: {
    name: 'parley_oldest_pending_seconds',
    type: 'gauge',
    labels: [],
    since: 'now',
    help: 'How long the oldest open question has waited; 0 without one',
  },
  deliveries: {
    name: 'parley_webhook_deliveries',
    type: 'gauge',
    labels: ['state'],
    since: 'now',
    help: 'Webhook deliveries that are pending or were given up',
  },
  streams: { name: 'parley_streams', type: 'gauge', labels: [], since: 'now', help: 'Open event streams' },
  residents: {
    name: 'parley_resident_processes',
    type: 'gauge',
    labels: [],
    since: 'now',
    help: 'Resident engine processes of runs that wait',
  },
  hitRate: {
    name: 'parley_parser_hit_rate',
    type: 'gauge',
    labels: ['engine', 'profile'],
    since: 'store',
    help: 'Share of the output units that the parser understood, from 0 to 1',
  },
  turns: {
    name: 'parley_turns_total',
    type: 'counter',
    labels: ['engine', 'profile'],
    since: 'store',
    help: 'Ended turns',
  },
  units: {
    name: 'parley_parser_units_total',
    type: 'counter',
    labels: ['engine', 'profile'],
    since: 'store',
    help: 'Output units that the parser read',
  },
  fallbacks: {
    name: 'parley_parser_fallbacks_total',
    type: 'counter',
    labels: ['engine', 'profile'],
    since: 'store',
    help: 'Output units that the parser kept as raw text',
  },
  warnings: {
    name: 'parley_parser_warnings_total',
    type: 'counter',
    labels: ['engine', 'profile', 'reason'],
    since: 'store',
    help: 'Parser warnings, by diagnostic code',
  },
  unknownCompletions: {
    name: 'parley_unknown_completions_total',
    type: 'counter',
    labels: ['engine', 'profile', 'reason'],
    since: 'store',
    help: 'Turns whose outcome could not be judged, by reason',
  },
} as const satisfies Readonly<Record<string, Listed>>;
