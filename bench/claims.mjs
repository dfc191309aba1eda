// Two ways to give queued turns to hosts, side by side on one PostgreSQL: as graphile-worker jobs that last as long as the turn, and by
// claims (SKIP LOCKED, as many as there are free slots) that are woken by NOTIFY. Three hosts with four slots each; turns of 20 ms.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { claimQueued } from '../dist/store/postgres/claims.js';
import { registerHost } from '../dist/store/postgres/host-lease.js';
import { openPostgres } from '../dist/store/postgres/open-postgres.js';
import { startServer } from './postgres-store.mjs';

const HOSTS = 3;
const SLOTS = 4;
const TURNS = 300;
const TURN_MS = 20;

export default async function bench() {
  const server = process.env.PARLEY_BENCH_DATABASE_URL ? { url: process.env.PARLEY_BENCH_DATABASE_URL, stop: async () => {} } : await startServer();
  try {
    const first = await openPostgres(server.url, { host: null, migrate: true });
    await first.close();
    for (const [name, way] of [['graphile jobs', byJobs], ['claims', byClaims]]) {
      const { seconds, latencies } = await way(server.url);
      const sorted = latencies.toSorted((a, b) => a - b);
      const at = (share) => sorted[Math.floor(sorted.length * share)].toFixed(1);
      console.log(`${name}: ${TURNS} turns at once in ${seconds.toFixed(2)} s (${Math.round(TURNS / seconds)} a second; ${(TURNS * TURN_MS / 1000 / HOSTS / SLOTS).toFixed(2)} s if nothing but the turns took time); one alone begins after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
    }
  } finally {
    await server.stop();
  }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, TURN_MS));

async function byJobs(url) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: new Logger(() => () => {}) });
  let left = 0;
  let done;
  const begun = new Map();
  const latencies = [];
  const task = async ({ name }) => {
    const at = begun.get(name);
    if (at !== undefined) latencies.push(performance.now() - at);
    await turn();
    left -= 1;
    if (left === 0) done();
  };
  const runners = await Promise.all(Array.from({ length: HOSTS }, () => run({ connectionString: url, concurrency: SLOTS, pollInterval: 2000, noHandleSignals: true, logger: new Logger(() => () => {}), taskList: { bench_turn: task } })));
  const seconds = await timed(async () => {
    left = TURNS;
    const over = new Promise((resolve) => (done = resolve));
    await utils.withPgClient((client) => client.query(`SELECT graphile_worker.add_job('bench_turn', json_build_object('name', 'many' || n)) FROM generate_series(1, $1) AS n`, [TURNS]));
    await over;
  });
  for (let number = 0; number < 100; number += 1) {
    left = 1;
    const over = new Promise((resolve) => (done = resolve));
    begun.set(`one${number}`, performance.now());
    await utils.addJob('bench_turn', { name: `one${number}` });
    await over;
  }
  await Promise.all(runners.map((runner) => runner.stop()));
  await utils.release();
  return { seconds, latencies };
}

async function byClaims(url) {
  const stores = await Promise.all(Array.from({ length: HOSTS }, (_, number) => openPostgres(url, { host: `claimer${number}` })));
  for (const [number, store] of stores.entries()) await registerHost(store.database, { host_id: `claimer${number}`, name: 'bench', url: null, ttlMs: 600_000 });
  let left = 0;
  let done;
  const begun = new Map();
  const latencies = [];
  const state = { isOpen: false };
  const lookers = stores.map((store, number) => {
    let busy = 0;
    let again = false;
    let looking = false;
    const look = async () => {
      again = true;
      if (looking || !state.isOpen) return;
      looking = true;
      while (again && state.isOpen && busy < SLOTS) {
        again = false;
        for (const id of await claimQueued(store.database, `claimer${number}`, { site: null, place: null }, SLOTS - busy, [])) {
          busy += 1;
          void play(store, id).finally(() => {
            busy -= 1;
            void look();
          });
        }
      }
      looking = false;
    };
    store.onCommitted(({ status }) => status === 'queued' && void look());
    return look;
  });
  async function play(store, id) {
    const run = await store.loadRun(id);
    const outcome = await store.commit({ run_id: id, expect: { status: 'queued', epoch: run.epoch, rasp_seq: run.heads.rasp_seq }, now: Date.now(), set: { status: 'running', epoch: run.epoch + 1 } });
    if (!outcome.committed) return;
    const at = begun.get(id);
    if (at !== undefined) latencies.push(performance.now() - at);
    await turn();
    await store.commit({ run_id: id, expect: { status: 'running', epoch: run.epoch + 1, rasp_seq: run.heads.rasp_seq }, now: Date.now(), set: { status: 'succeeded' } });
    left -= 1;
    if (left === 0) done();
  }
  const line = Buffer.from('{"seq":1}\n');
  const create = (id) => stores[0].createRun({ run_id: id, request_id: id, request_digest: '', session_timeout_sec: 1, handle: null, created_at: Date.now(), queue_limit: 1e9, spec: { engine: 'rehearsal', execution_mode: 'auto', prompt: '', cwd: '/', home: null, permission: 'read-only', runtime_options: {}, labels: {} }, journal: { rasp: { firstSeq: 1, lastSeq: 1, bytes: line }, fcmp: null, firstTs: 1, lastTs: 1 } });
  // Created before, so that only giving them out is measured: their queue is opened at once.
  await Promise.all(Array.from({ length: TURNS }, (_, number) => create(`run_many_${number}`)));
  const seconds = await timed(async () => {
    left = TURNS;
    state.isOpen = true;
    const over = new Promise((resolve) => (done = resolve));
    for (const look of lookers) void look();
    await over;
  });
  for (let number = 0; number < 100; number += 1) {
    left = 1;
    const over = new Promise((resolve) => (done = resolve));
    begun.set(`run_one_${number}`, performance.now());
    await create(`run_one_${number}`);
    await over;
  }
  state.isOpen = false;
  await Promise.all(stores.map((store) => store.close()));
  return { seconds, latencies };
}

async function timed(work) {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}
