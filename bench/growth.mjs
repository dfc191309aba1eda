// How the cost of everyday work grows with the number of stored runs: each measurement on data directories with 1,000,
// 10,000 and 100,000 runs, with the longest time for which the event loop stood still. `exponent` is the slope of
// log time over log size: 0 is constant, 1 is linear.
//
// A measurement is { name, sizes, fill, measure }: `fill` prepares a folder for a size, once for all measurements with
// the same `fill`; `measure` gets what it returned and returns { ms, stall } of each repetition.
// PARLEY_GROWTH_SIZES=1000,10000 measures other sizes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deleteRun } from '../dist/commands/delete-run.js';
import { sweep } from '../dist/commands/retention.js';
import { singleHost } from '../dist/ownership/single-host.js';
import { createMetrics } from '../dist/service/figures/metrics.js';
import { openDataDir } from '../dist/store/sqlite/data-dir.js';
import { format, median, now } from './lib/figures.mjs';
import { FEW, fillRuns, NOW, runId, stateOf } from './lib/fill-runs.mjs';

const SIZES = (process.env.PARLEY_GROWTH_SIZES ?? '1000,10000,100000').split(',').map(Number);
const REPETITIONS = 9;
const PAGE = 50;
// Shorter times are noise: a measurement that is below for all sizes is constant.
const LEAST_MS = 0.05;
const DAY_MS = 24 * 3600 * 1000;
const RETENTION_RUNS = 100;

async function fillStore(folder, size) {
  const path = join(folder, 'data');
  await (await openDataDir(path, { pid: process.pid })).close();
  await fillRuns(join(path, 'parley.db'), path, size);
  const data = await openDataDir(path, { pid: process.pid });
  const clock = { now: () => NOW };
  const deps = { store: data.store, clock, dataDir: data.path, ...singleHost(data.store) };
  // Runs are deleted from the oldest on: each deletion of a measurement takes the next ended ones.
  let oldest = FEW * 10;
  const nextEnded = () => {
    do oldest += 1;
    while (['queued', 'waiting_user'].includes(stateOf(oldest)));
    return runId(oldest);
  };
  return { ...data, size, deps, nextEnded, close: () => data.close() };
}

const ofStore = (name, work) => ({
  name,
  sizes: SIZES,
  fill: fillStore,
  measure: async (filled) => {
    const results = [];
    for (let count = 0; count < REPETITIONS; count += 1) results.push(await watch(() => work(filled, count)));
    return results;
  },
});

const spec = {
  engine: 'codex',
  execution_mode: 'auto',
  prompt: 'x',
  cwd: '/work',
  home: null,
  permission: 'read-only',
};
const newRun = (id, queueLimit) => ({
  run_id: id,
  request_id: id,
  request_digest: 'x',
  spec: { ...spec, runtime_options: {}, labels: {} },
  session_timeout_sec: 1200,
  handle: null,
  created_at: NOW,
  journal: {
    rasp: { firstSeq: 1, lastSeq: 1, bytes: Buffer.from('{"seq":1}\n') },
    fcmp: null,
    firstTs: NOW,
    lastTs: NOW,
  },
  queue_limit: queueLimit,
});

export const MEASUREMENTS = [
  ofStore('/metrics', async ({ store, deps }) => {
    const metrics = createMetrics({ store, clock: deps.clock, orchestrator: { residents: 0 } }, { size: 0 });
    await metrics.text();
    metrics.close();
  }),
  ofStore('/v1/metrics/parsers', ({ store }) => store.sumTurns()),
  ofStore('list by an engine that has few', ({ store }) => store.summaries.listRuns({ engine: 'gemini', limit: PAGE })),
  ofStore('list by state and engine', ({ store }) =>
    store.summaries.listRuns({ status: 'succeeded', engine: 'gemini', limit: PAGE }),
  ),
  ofStore('list by a label that half have', ({ store }) =>
    store.summaries.listRuns({ label: { key: 'half', value: 'yes' }, limit: PAGE }),
  ),
  ofStore('list by label and state', ({ store }) =>
    store.summaries.listRuns({ label: { key: 'few', value: 'yes' }, status: 'succeeded', limit: PAGE }),
  ),
  ofStore('inbox by engine', ({ store }) => store.summaries.listPending({ engine: 'gemini', limit: PAGE })),
  ofStore('inbox by label', ({ store }) =>
    store.summaries.listPending({ label: { key: 'few', value: 'yes' }, limit: PAGE }),
  ),
  ofStore('listQueued', ({ store }) => store.listQueued(1)),
  ofStore('findAtWork', ({ store }) => store.findAtWork('/nowhere')),
  ofStore('next decision', ({ store }) => store.nextDecision()),
  ofStore('next delivery of another hook', ({ store }) => store.nextDelivery(NOW, ['board'])),
  ofStore('create a run with a full queue', async ({ store, size }, count) => {
    const { created } = await store.createRun(newRun(`run_Z${count}`, size / 10));
    if (created) throw new Error('the queue was not full');
  }),
  ofStore('delete a run', ({ deps, nextEnded }) => deleteRun(deps, nextEnded(), { isRunHere: false, onFailure: fail })),
  {
    ...ofStore('retention, for each run', () => {}),
    measure: async ({ deps, nextEnded }) => {
      for (let count = 1; count < RETENTION_RUNS; count += 1) nextEnded();
      const last = await deps.store.loadRun(nextEnded());
      const clock = { now: () => last.updated_at + DAY_MS };
      let deleted = [];
      const { ms, stall } = await watch(async () => {
        deleted = await sweep({ ...deps, clock }, { ended_after_days: 1 }, SWEEP);
      });
      return [{ ms: ms / deleted.length, stall }];
    },
  },
];

const SWEEP = { signal: new AbortController().signal, onFailure: fail };

function fail(runId, error) {
  throw new Error(`run ${runId}`, { cause: error });
}

// How long the work takes, and the longest time between two ticks of the event loop meanwhile.
async function watch(work) {
  let stall = 0;
  let isOver = false;
  let last = await nextTick();
  const began = last;
  const tick = () => {
    stall = Math.max(stall, now() - last);
    last = now();
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  const ms = now() - began;
  isOver = true;
  return { ms, stall: Math.max(stall, now() - last) };
}

function nextTick() {
  return new Promise((resolve) => void setImmediate(() => resolve(now())));
}

// The slope of the line through (log size, log time) with the least squares.
export function fitExponent(sizes, times) {
  const points = sizes.map((size, index) => [Math.log(size), Math.log(Math.max(LEAST_MS, times[index]))]);
  const mean = (axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const spread = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / spread;
}

export default async function benchGrowth() {
  const rows = new Map(MEASUREMENTS.map((each) => [each.name, []]));
  for (const fill of new Set(MEASUREMENTS.map((each) => each.fill))) {
    const measurements = MEASUREMENTS.filter((each) => each.fill === fill);
    for (const size of new Set(measurements.flatMap(({ sizes }) => sizes))) {
      const folder = mkdtempSync(join(tmpdir(), 'parley-growth-'));
      try {
        const filled = await fill(folder, size);
        for (const { name, sizes, measure } of measurements) {
          if (!sizes.includes(size)) continue;
          const results = await measure(filled);
          const stall = Math.max(...results.map((each) => each.stall));
          rows.get(name).push({ size, ms: median(results.map(({ ms }) => ms)), stall });
        }
        await filled.close();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  }
  print(rows);
}

function print(rows) {
  const widest = Math.max(...[...rows.keys()].map((name) => name.length));
  const sizes = [...new Set([...rows.values()].flatMap((cells) => cells.map(({ size }) => size)))];
  const columns = sizes.map((size) => `${format(size)} runs`.padStart(20)).join('');
  console.log(`${'median ms (longest stall)'.padEnd(widest)}${columns}${'exponent'.padStart(10)}`);
  for (const [name, cells] of rows) {
    const times = cells.map(({ ms, stall }) => `${format(ms)} (${format(stall)})`.padStart(20)).join('');
    const slope = fitExponent(
      cells.map(({ size }) => size),
      cells.map(({ ms }) => ms),
    );
    console.log(`${name.padEnd(widest)}${times}${slope.toFixed(2).padStart(10)}`);
  }
}
