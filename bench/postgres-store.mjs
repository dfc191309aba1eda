// Measures the shared store on a real PostgreSQL with durable settings: flushes of 1 and of 8 writers next to bare
// inserts of the same bytes, changes of state, and reads. Uses PARLEY_BENCH_DATABASE_URL (an empty database), or starts
// a server.
import { Pool } from 'pg';
import { stateOf } from '../dist/journal/run-state.js';
import { registerHost } from '../dist/store/postgres/hosts/host-lease.js';
import { openPostgres } from '../dist/store/postgres/connection/open-postgres.js';
import { openServer } from './lib/postgres-server.mjs';

const SECONDS = 3;
const EVENT = `{"seq":1,"text":"${'x'.repeat(580)}"}\n`;

export default async function bench() {
  const server = await openServer();
  const store = await openPostgres(server.url, { host: 'bench', migrate: true });
  try {
    await registerHost(store.database, { host_id: 'bench', name: 'bench', url: null, ttlMs: 3_600_000 });
    await measure(store, server.url);
  } finally {
    await store.close();
    await server.stop();
  }
}

async function measure(store, url) {
  for (const events of [1, 10, 100, 500]) {
    for (const writers of [1, 8]) {
      const bare = await bareInserts(url, writers, events);
      const flushes = await rate(
        writers,
        await Promise.all(Array.from({ length: writers }, () => writer(store, events))),
      );
      console.log(
        `${writers} writer${writers === 1 ? ' ' : 's'}, ${String(events).padStart(3)} events a flush: ` +
          `${fixed(flushes)} flushes/s, ${fixed(flushes * events)} events/s, ${(flushes / bare).toFixed(2)} of a ` +
          'bare insert',
      );
    }
  }
  for (const writers of [1, 8])
    console.log(
      `${writers} creating runs: ${fixed(
        await rate(
          writers,
          Array.from({ length: writers }, () => () => create(store)),
        ),
      )} runs/s`,
    );
  for (const writers of [1, 8])
    console.log(
      `${writers} changing states: ` +
        `${fixed(await rate(writers, await Promise.all(Array.from({ length: writers }, () => changer(store)))))} ` +
        'changes/s',
    );
  const run = await create(store);
  const step = await follow(store, run, 500);
  for (let round = 0; round < 200; round += 1) await step();
  const startedAt = performance.now();
  for (
    let after = 0, read;
    (read = await store.readLines(run.run_id, 'rasp', after, 256 * 1024));
    after = read.lastSeq
  );
  console.log(`reading: ${fixed(100_000 / ((performance.now() - startedAt) / 1000))} events/s`);
}

const fixed = (value) => Math.round(value).toLocaleString('en');

// Operations per second, with so many at once.
async function rate(writers, steps) {
  for (const step of steps) for (let warm = 0; warm < 10; warm += 1) await step();
  const startedAt = performance.now();
  let done = 0;
  await Promise.all(
    steps.slice(0, writers).map(async (step) => {
      while (performance.now() - startedAt < SECONDS * 1000) {
        await step();
        done += 1;
      }
    }),
  );
  return done / ((performance.now() - startedAt) / 1000);
}

let count = 0;

function lines(firstSeq, events) {
  return { firstSeq, lastSeq: firstSeq + events - 1, bytes: Buffer.from(EVENT.repeat(events)) };
}

async function create(store) {
  const id = `${Date.now()}_${(count += 1)}`;
  const spec = {
    engine: 'codex',
    execution_mode: 'interactive',
    prompt: 'x',
    cwd: '/work',
    home: null,
    permission: 'full',
    runtime_options: {},
    labels: { team: 'a' },
  };
  const outcome = await store.createRun({
    run_id: `run_${id}`,
    request_id: `req_${id}`,
    request_digest: 'd',
    spec,
    session_timeout_sec: 1,
    handle: null,
    created_at: 1,
    queue_limit: 1e9,
    journal: { rasp: lines(1, 1), fcmp: null, firstTs: 1, lastTs: 1 },
  });
  return outcome.run;
}

async function append(store, run, { status = run.status, events = 0 }) {
  const before = stateOf(run);
  const outcome = await store.append({
    run_id: run.run_id,
    expect: { epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
    now: 1,
    before,
    after: status === run.status ? before : { ...before, status },
    lines:
      events === 0 ? undefined : { rasp: lines(run.heads.rasp_seq + 1, events), fcmp: null, firstTs: 1, lastTs: 1 },
  });
  if (!outcome.committed) throw new Error(outcome.reason);
  return { ...run, status, heads: outcome.heads };
}

async function writer(store, events) {
  return follow(store, await append(store, await create(store), { status: 'running' }), events);
}

async function follow(store, first, events) {
  let run = first;
  return async () => {
    run = await append(store, run, { events });
  };
}

// Moves from one turn to the next and back, with an event each.
async function changer(store) {
  let run = await create(store);
  return async () => {
    run = await append(store, run, { status: run.status === 'running' ? 'queued' : 'running', events: 1 });
  };
}

async function bareInserts(url, writers, events) {
  const pool = new Pool({ connectionString: url, max: writers });
  await pool.query(
    'CREATE TABLE IF NOT EXISTS bare (id text, seq bigint, body bytea, PRIMARY KEY (id, seq)); ALTER TABLE bare ' +
      'ALTER body SET STORAGE EXTERNAL; TRUNCATE bare',
  );
  const body = Buffer.from(EVENT.repeat(events));
  const inserts = await rate(
    writers,
    Array.from({ length: writers }, (_, index) => {
      let seq = 0;
      return () =>
        pool.query({
          name: 'bare',
          text: 'INSERT INTO bare VALUES ($1, $2, $3)',
          values: [`run_${index}`, (seq += 1), body],
        });
    }),
  );
  await pool.query('DROP TABLE bare');
  await pool.end();
  return inserts;
}
