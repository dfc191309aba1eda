// How the notifications between hosts of one PostgreSQL grow with their number: light hosts, which only have a store
// and its lease. Each has five runs that store ten events twice a second, and readers of five runs of other hosts. With
// one channel for all, each host would get the notifications of all others: that is computed.
import { setTimeout as pause } from 'node:timers/promises';
import { stateOf } from '../../dist/journal/run-state.js';
import { registerHost } from '../../dist/store/postgres/hosts/host-lease.js';
import { openPostgres } from '../../dist/store/postgres/connection/open-postgres.js';
import { createIds } from '../../dist/kernel/ids.js';
import { systemClock } from '../../dist/kernel/clock.js';
import { format, share, sum } from '../lib/figures.mjs';
import { openServer } from '../lib/postgres-server.mjs';

const RUNS = 5;
const FLUSHES = 2;
const EVENTS = 10;
const SECONDS = 8;
const ONCE_SECONDS = 2;
const ids = createIds(systemClock);
const LINE = `{"seq":1,"text":"${'x'.repeat(580)}"}\n`;
const EACH = 'notifications for each host';

export default {
  name: 'growth-hosts',
  of: 'hosts',
  title: 'Hosts that share a PostgreSQL',
  description:
    `Light hosts in one process, which only have a store and its lease. Each has ${RUNS} runs that store ${EVENTS} ` +
    `events ${FLUSHES} times a second, and readers of ${RUNS} runs of other hosts. "One channel": what each host ` +
    'would get if all shared one channel, computed. CPU is that of the hosts or of the server, for each host and ' +
    'second.',
  sizes: [2, 5, 10, 20],
  onceSizes: [2, 4],
  plots: [
    { title: 'Notifications for each host', unit: '1/s', rows: [EACH, 'one channel'] },
    {
      title: 'CPU for each host and second',
      unit: 'ms',
      rows: ['CPU for each host', 'CPU of PostgreSQL for each host'],
    },
  ],
  open: async () => {
    const server = await openServer();
    return { ...server, close: () => server.stop() };
  },
  measure: async ({ size, record, isOnce, context }) => {
    const seconds = isOnce ? ONCE_SECONDS : SECONDS;
    const hosts = [];
    try {
      for (let number = 0; number < size; number += 1) hosts.push(await openHost(context.url, `${size}-${number}`));
      await measure(hosts, { seconds, record, cpuOfServer: context.cpu });
    } finally {
      await Promise.all(hosts.map(({ store }) => store.close()));
    }
  },
  aims: (of) => [
    {
      aim: 'a host gets no more notifications when there are more hosts (exponent at most 0.2)',
      got: `exponent ${format(of(EACH, 'exponent'))}`,
      reached: of(EACH, 'exponent') <= 0.2,
    },
  ],
};

async function measure(hosts, { seconds, record, cpuOfServer }) {
  const runs = new Map(hosts.flatMap(({ runs: own }) => own.map((run) => [run.record.run_id, run])));
  const latencies = [];
  let heard = 0;
  for (const [number, { store }] of hosts.entries()) {
    store.onCommitted(({ origin, run_id: runId }) => {
      if (origin !== 'elsewhere') return;
      heard += 1;
      const { sentAt } = runs.get(runId);
      if (sentAt > 0) latencies.push(performance.now() - sentAt);
    });
    // Each run is read by one host, which is not its own.
    for (let slot = 0; slot < RUNS; slot += 1) {
      const other = (number + 1 + (slot % (hosts.length - 1))) % hosts.length;
      store.follow(hosts[other].runs[slot].record.run_id);
    }
  }
  // The channels are open.
  await pause(500);
  heard = 0;
  latencies.length = 0;
  const [cpu, database] = [process.cpuUsage(), cpuOfServer()];
  const startedAt = performance.now();
  const writers = hosts.flatMap(({ store, runs: own }) => own.map((run) => ({ store, run })));
  const flushes = sum(
    await Promise.all(
      writers.map(({ store, run }, index) =>
        write(store, run, { startedAt: startedAt + (index * 1000) / FLUSHES / writers.length, seconds }),
      ),
    ),
  );
  await pause(200);
  const { user, system } = process.cpuUsage(cpu);
  const perHost = (value) => [value / hosts.length / seconds];
  record('flushes stored by each host', { unit: '1/s', values: perHost(flushes) });
  record(EACH, { unit: '1/s', values: perHost(heard) });
  const single = (flushes * (hosts.length - 1)) / hosts.length;
  record('one channel', { unit: '1/s', values: [single / seconds] });
  record('CPU for each host', { values: perHost((user + system) / 1000) });
  if (database !== null)
    record('CPU of PostgreSQL for each host', { values: perHost((cpuOfServer() - database) / 1000) });
  record('commit to reader, p50', { values: [share(latencies, 0.5)] });
  record('commit to reader, p99', { values: [share(latencies, 0.99)] });
}

async function openHost(url, name) {
  const store = await openPostgres(url, { host: `bench-${name}`, migrate: true, connections: 2 });
  try {
    await registerHost(store.database, { host_id: `bench-${name}`, name, url: null, ttlMs: 600_000 });
    const runs = [];
    for (let number = 0; number < RUNS; number += 1) runs.push(await openRun(store));
    return { store, runs };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openRun(store) {
  const id = ids.run();
  const { run: record } = await store.createRun({
    run_id: id,
    request_id: `req_${id}`,
    request_digest: 'd',
    spec: {
      engine: 'codex',
      execution_mode: 'interactive',
      prompt: 'x',
      cwd: '/work',
      home: null,
      permission: 'full',
      runtime_options: {},
      labels: {},
    },
    session_timeout_sec: 1,
    handle: null,
    created_at: 1,
    queue_limit: 1e9,
    journal: lines(1, 1),
  });
  const run = { record, sentAt: 0 };
  await append(store, run, { status: 'running' });
  return run;
}

// Stores events at a steady rate. Returns how often, which is fewer if the database is too slow.
async function write(store, run, { startedAt, seconds }) {
  let flushes = 0;
  for (; flushes < seconds * FLUSHES; flushes += 1) {
    await pause(Math.max(0, startedAt + (flushes * 1000) / FLUSHES - performance.now()));
    if (performance.now() - startedAt > 2 * seconds * 1000) return flushes;
    run.sentAt = performance.now();
    await append(store, run, { events: EVENTS });
  }
  return flushes;
}

async function append(store, run, { status = run.record.status, events = 0 }) {
  const { record } = run;
  const before = stateOf(record);
  const outcome = await store.append({
    run_id: record.run_id,
    expect: { epoch: record.epoch, rasp_seq: record.heads.rasp_seq },
    now: 1,
    before,
    after: status === record.status ? before : { ...before, status },
    lines: events === 0 ? undefined : lines(record.heads.rasp_seq + 1, events),
  });
  if (!outcome.committed) throw new Error(outcome.reason);
  run.record = { ...record, status, heads: outcome.heads };
}

function lines(firstSeq, count) {
  const bytes = Buffer.from(LINE.repeat(count));
  return { rasp: { firstSeq, lastSeq: firstSeq + count - 1, bytes }, fcmp: null, firstTs: 1, lastTs: 1 };
}
