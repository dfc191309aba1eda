// How the notifications between hosts of one PostgreSQL grow with their number: light hosts, which only have a store
// and its lease. Each has a run that stores ten events ten times a second, and readers of five runs of other hosts.
// With one channel for all, as in earlier versions, each host would get the notifications of all others: that is
// computed.
import { setTimeout as pause } from 'node:timers/promises';
import { stateOf } from '../dist/journal/run-state.js';
import { registerHost } from '../dist/store/postgres/hosts/host-lease.js';
import { openPostgres } from '../dist/store/postgres/connection/open-postgres.js';
import { createIds } from '../dist/kernel/ids.js';
import { systemClock } from '../dist/kernel/clock.js';
import { exponentOf, share, sum } from './lib/figures.mjs';
import { startServer } from './postgres-store.mjs';

const HOSTS = [2, 5, 10, 20];
const READ_RUNS = 5;
const SECONDS = 5;
const FLUSHES = 10;
const EVENTS = 10;
const ids = createIds(systemClock);
const LINE = `{"seq":1,"text":"${'x'.repeat(580)}"}\n`;

export default async function bench() {
  const server = process.env.PARLEY_BENCH_DATABASE_URL
    ? { url: process.env.PARLEY_BENCH_DATABASE_URL, stop: async () => {} }
    : await startServer();
  try {
    const rows = [];
    for (const hosts of HOSTS) rows.push(await measure(server.url, hosts));
    console.log(
      `${FLUSHES} flushes a second for each host, read by up to ${READ_RUNS} other hosts. "one channel": what every ` +
        'host would get if all shared one channel.',
    );
    for (const row of rows)
      console.log(
        `${String(row.hosts).padStart(3)} hosts: ${row.stored.toFixed(0)} flushes/s stored, ` +
          `${row.each.toFixed(1)} notifications/s for each host (one channel: ${row.single.toFixed(1)}), ` +
          `${row.all.toFixed(0)} in all; commit to reader p50 ${row.p50.toFixed(1)} ms, p99 ${row.p99.toFixed(1)} ms`,
      );
    const points = (name) => rows.map((row) => [row.hosts, row[name]]);
    console.log(
      `grows with the hosts: in all ^${exponentOf(points('all')).toFixed(2)}, with one channel ` +
        `^${exponentOf(rows.map((row) => [row.hosts, row.single * row.hosts])).toFixed(2)}`,
    );
  } finally {
    await server.stop();
  }
}

async function measure(url, count) {
  const hosts = [];
  try {
    for (let number = 0; number < count; number += 1) hosts.push(await openHost(url, `${count}-${number}`));
    const latencies = [];
    let heard = 0;
    for (const [number, host] of hosts.entries()) {
      host.store.onCommitted(({ origin, run_id: runId }) => {
        if (origin !== 'elsewhere') return;
        heard += 1;
        const sent = hosts.find(({ run }) => run.run_id === runId)?.sent;
        if (sent) latencies.push(performance.now() - sent);
      });
      for (let other = 1; other <= Math.min(READ_RUNS, count - 1); other += 1)
        host.store.follow(hosts[(number + other) % count].run.run_id);
    }
    // The channels are open.
    await pause(500);
    heard = 0;
    latencies.length = 0;
    const startedAt = performance.now();
    const stored = sum(await Promise.all(hosts.map((host) => write(host, startedAt))));
    await pause(200);
    const each = heard / count / SECONDS;
    return {
      hosts: count,
      stored: stored / SECONDS,
      each,
      all: heard / SECONDS,
      single: (stored / SECONDS) * ((count - 1) / count),
      p50: share(latencies, 0.5),
      p99: share(latencies, 0.99),
    };
  } finally {
    await Promise.all(hosts.map(({ store }) => store.close()));
  }
}

async function openHost(url, name) {
  const store = await openPostgres(url, { host: `bench-${name}`, migrate: true, connections: 2 });
  await registerHost(store.database, { host_id: `bench-${name}`, name, url: null, ttlMs: 600_000 });
  const id = ids.run();
  const { run } = await store.createRun({
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
  const host = { store, run, sent: 0 };
  await append(host, { status: 'running' });
  return host;
}

async function write(host, startedAt) {
  let flushes = 0;
  for (; flushes < SECONDS * FLUSHES; flushes += 1) {
    await pause(Math.max(0, startedAt + (flushes * 1000) / FLUSHES - performance.now()));
    if (performance.now() - startedAt > 2 * SECONDS * 1000) return flushes;
    host.sent = performance.now();
    await append(host, { events: EVENTS });
  }
  return flushes;
}

async function append(host, { status = host.run.status, events = 0 }) {
  const { run, store } = host;
  const before = stateOf(run);
  const outcome = await store.append({
    run_id: run.run_id,
    expect: { epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
    now: 1,
    before,
    after: status === run.status ? before : { ...before, status },
    lines: events === 0 ? undefined : lines(run.heads.rasp_seq + 1, events),
  });
  if (!outcome.committed) throw new Error(outcome.reason);
  host.run = { ...run, status, heads: outcome.heads };
}

function lines(firstSeq, count) {
  const bytes = Buffer.from(LINE.repeat(count));
  return { rasp: { firstSeq, lastSeq: firstSeq + count - 1, bytes }, fcmp: null, firstTs: 1, lastTs: 1 };
}
