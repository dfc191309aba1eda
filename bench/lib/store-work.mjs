// The everyday work of a store, measured with many stored runs: the same for SQLite and PostgreSQL. Its runs are those
// of fill-runs.mjs.
import { deleteRun } from '../../dist/commands/delete-run.js';
import { sweep } from '../../dist/commands/retention.js';
import { createMetrics } from '../../dist/service/figures/metrics.js';
import { FEW, isEnded, NOW, runId } from './fill-runs.mjs';
import { WARM_UPS, watch, watchEach } from './stalls.mjs';

const REPETITIONS = 9;
const PAGE = 50;
const DAY_MS = 24 * 3600 * 1000;
const RETENTION_RUNS = 100;
// The first runs are those that few filters find; runs are deleted after them.
const KEPT = FEW * 10;
// How many runs must be stored, so that there are enough ended ones to delete.
export const LEAST_RUNS = KEPT + 2 * (WARM_UPS + REPETITIONS + RETENTION_RUNS);
export const RUN_SIZES = sizesFrom(process.env.PARLEY_GROWTH_SIZES) ?? [1000, 10_000, 100_000];

const clock = { now: () => NOW };
const sweepOptions = { signal: new AbortController().signal, onFailure: fail };

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

const WORK = {
  '/metrics': async ({ store }) => {
    const metrics = createMetrics({ store, clock, orchestrator: { residents: 0 } }, { size: 0 });
    await metrics.text();
    metrics.close();
  },
  '/v1/metrics/parsers': ({ store }) => store.sumTurns(),
  list: ({ store }) => store.summaries.listRuns({ limit: PAGE }),
  'list by an engine that has few': ({ store }) => store.summaries.listRuns({ engine: 'gemini', limit: PAGE }),
  'list by state and engine': ({ store }) =>
    store.summaries.listRuns({ status: 'succeeded', engine: 'gemini', limit: PAGE }),
  'list by a label that half have': ({ store }) =>
    store.summaries.listRuns({ label: { key: 'half', value: 'yes' }, limit: PAGE }),
  'list by label and state': ({ store }) =>
    store.summaries.listRuns({ label: { key: 'few', value: 'yes' }, status: 'succeeded', limit: PAGE }),
  inbox: ({ store }) => store.summaries.listPending({ limit: PAGE }),
  'inbox by engine': ({ store }) => store.summaries.listPending({ engine: 'gemini', limit: PAGE }),
  'inbox by label': ({ store }) => store.summaries.listPending({ label: { key: 'few', value: 'yes' }, limit: PAGE }),
  listQueued: ({ store }) => store.listQueued(1),
  findAtWork: ({ store }) => store.findAtWork('/nowhere'),
  'next decision': ({ store }) => store.nextDecision(),
  'next delivery of another hook': ({ store }) => store.nextDelivery(NOW, ['board']),
  'create a run with a full queue': async ({ store, size }, count) => {
    const { created } = await store.createRun(newRun(`run_Z${count}`, size / 10));
    if (created) throw new Error('the queue was not full');
  },
};

// `filled`: { store, size, deps of deletions }, `record` as in growth.mjs.
export async function measureStore(filled, record) {
  for (const [name, work] of Object.entries(WORK))
    record(name, await watchEach(REPETITIONS, (count) => work(filled, count)));
  await measureDeletions(filled, record);
}

async function measureDeletions({ deps: portsAndFiles }, record) {
  const deps = { ...portsAndFiles, clock };
  // From the oldest on: each deletion takes the next ended run.
  let oldest = KEPT;
  const nextEnded = () => {
    do oldest += 1;
    while (!isEnded(oldest));
    return runId(oldest);
  };
  record(
    'delete a run',
    await watchEach(REPETITIONS, () => deleteRun(deps, nextEnded(), { isRunHere: false, onFailure: fail })),
  );
  for (let count = 1; count < RETENTION_RUNS; count += 1) nextEnded();
  const last = await deps.store.loadRun(nextEnded());
  let deleted = [];
  const { ms, stall } = await watch(async () => {
    const later = { now: () => last.updated_at + DAY_MS };
    deleted = await sweep({ ...deps, clock: later }, { ended_after_days: 1 }, sweepOptions);
  });
  if (deleted.length < RETENTION_RUNS) throw new Error(`only ${deleted.length} runs were deleted`);
  record('retention, for each run', { values: [ms / deleted.length], stall });
}

function fail(runId, error) {
  throw new Error(`run ${runId}`, { cause: error });
}

function sizesFrom(text) {
  if (!text) return null;
  const sizes = text.split(',').map(Number);
  const wrong = sizes.find((size) => !Number.isInteger(size) || size < LEAST_RUNS);
  if (wrong !== undefined) throw new Error(`PARLEY_GROWTH_SIZES=${text}: sizes are numbers from ${LEAST_RUNS} on`);
  return sizes;
}
