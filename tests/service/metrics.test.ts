// The metrics: their text format, and tokens counted from usage events.
import { expect, test } from 'vitest';
import { Counter, Gauge, Histogram } from '../../src/service/figures/prometheus.js';
import { UsageMetrics } from '../../src/service/figures/usage-metrics.js';
import type { JournalFlush } from '../../src/store/store.js';

test('counters, gauges and histograms are written in the text format of Prometheus', () => {
  const counter = new Counter({ name: 'a_total', type: 'counter', labels: ['route'], help: 'A' });
  counter.inc({ route: '/x "y"\\z\n' });
  counter.inc({ route: '/x "y"\\z\n' }, 2);
  expect(counter.text()).toBe('# HELP a_total A\n# TYPE a_total counter\na_total{route="/x \\"y\\"\\\\z\\n"} 3\n');
  const gauge = new Gauge({ name: 'b', type: 'gauge', labels: ['x'], help: 'B' });
  gauge.setAll([[{ x: '1' }, 5]]);
  gauge.setAll([[{ x: '2' }, 7]]);
  expect(gauge.text()).toBe('# HELP b B\n# TYPE b gauge\nb{x="2"} 7\n');
  const unlabelled = new Gauge({ name: 'd', type: 'gauge', labels: [], help: 'D' });
  unlabelled.setAll([[{}, 7]]);
  expect(unlabelled.text()).toBe('# HELP d D\n# TYPE d gauge\nd 7\n');
  const histogram = new Histogram({ name: 'c', type: 'histogram', labels: ['m'], help: 'C', buckets: [1, 10] });
  for (const value of [0.5, 1, 5, 100]) histogram.observe({ m: 'x' }, value);
  expect(histogram.text()).toBe(
    '# HELP c C\n# TYPE c histogram\nc_bucket{le="1",m="x"} 2\nc_bucket{le="10",m="x"} ' +
      '3\nc_bucket{le="+Inf",m="x"} 4\nc_sum{m="x"} 106.5\nc_count{m="x"} 4\n',
  );
});

function usageFlush(...usages: object[]): JournalFlush {
  const lines = usages.map((data) =>
    JSON.stringify({ event: { category: 'agent', type: 'agent.usage' }, source: { engine: 'codex' }, data }),
  );
  return {
    rasp: {
      firstSeq: 2,
      lastSeq: 1 + lines.length,
      bytes: Buffer.from(`{"event":{"type":"raw.stdout"},"data":{"text":"\\"agent.usage\\""}}\n${lines.join('\n')}\n`),
    },
    fcmp: null,
    firstTs: 0,
    lastTs: 0,
  };
}

const samplesOf = (counter: Counter) =>
  counter
    .text()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

test('tokens and cost of turns and steps are added up', () => {
  const usage = new UsageMetrics();
  usage.add(
    'run_1',
    usageFlush(
      { scope: 'turn', input_tokens: 10, output_tokens: 2, cost_usd: 0.5 },
      { scope: 'step', input_tokens: 1, reasoning_tokens: 3 },
    ),
  );
  expect(samplesOf(usage.tokens)).toEqual([
    'parley_tokens_total{engine="codex",kind="input"} 11',
    'parley_tokens_total{engine="codex",kind="output"} 2',
    'parley_tokens_total{engine="codex",kind="reasoning"} 3',
  ]);
  expect(samplesOf(usage.cost)).toEqual(['parley_cost_usd_total{engine="codex"} 0.5']);
});

test('figures of a whole conversation are counted by their growth, and not where its beginning is unknown', () => {
  const usage = new UsageMetrics();
  usage.began('run_1');
  for (const input of [100, 250, 250]) usage.add('run_1', usageFlush({ scope: 'thread', input_tokens: input }));
  // It continues a conversation that was not seen here.
  for (const input of [1000, 1007]) usage.add('run_2', usageFlush({ scope: 'thread', input_tokens: input }));
  expect(samplesOf(usage.tokens)).toEqual(['parley_tokens_total{engine="codex",kind="input"} 257']);
});
