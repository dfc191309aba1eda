// How costs grow with the number of stored runs, in the store of one host (SQLite) and over HTTP.
import { join } from 'node:path';
import { CommitWakeups } from '../../dist/journal/wakeups.js';
import { singleHost } from '../../dist/ownership/single-host.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';
import { format } from '../lib/figures.mjs';
import { fillFolder, fillRuns, interactionId, isEnded, runId } from '../lib/fill-runs.mjs';
import { worstStall } from '../lib/growth-table.mjs';
import { openService, readResponse } from '../lib/open-service.mjs';
import { watchEach } from '../lib/stalls.mjs';
import { LEAST_RUNS, measureStore, RUN_SIZES } from '../lib/store-work.mjs';
import { newFolder, removeFolder } from '../lib/systems.mjs';

const TOKEN = 'prl_2Lx8Vn4Qb9Tf6Rw1Zk7Hc3Mj5Pg0Yd';
const HEADERS = { authorization: `Bearer ${TOKEN}` };
const REPETITIONS = 5;
const AIM_RUNS = 100_000;

// Paths of all routes that read many runs; a stream is read until it has sent what there is.
const ROUTES = {
  'GET /metrics': () => '/metrics',
  'GET /v1/metrics/parsers': () => '/v1/metrics/parsers',
  'GET /readyz': () => '/readyz',
  'GET /v1/runs': () => '/v1/runs',
  'GET /v1/runs, 500 of them': () => '/v1/runs?limit=500',
  'GET /v1/runs from the middle': (size) => `/v1/runs?cursor=${runId(Math.floor(size / 2))}`,
  'GET /v1/runs by engine': () => '/v1/runs?engine=gemini',
  'GET /v1/runs by state and engine': () => '/v1/runs?status=succeeded&engine=gemini',
  'GET /v1/runs by label': () => '/v1/runs?label=half=yes',
  'GET /v1/runs by label and state': () => '/v1/runs?label=few=yes&status=succeeded',
  'GET /v1/runs/{id}': (size) => `/v1/runs/${runId(Math.floor(size / 2))}`,
  'GET /v1/interactions': () => '/v1/interactions',
  'GET /v1/interactions, 500 of them': () => '/v1/interactions?limit=500',
  'GET /v1/interactions from the middle': (size) =>
    `/v1/interactions?cursor=${interactionId(10 * Math.floor(size / 20) + 1)}`,
  'GET /v1/interactions by engine': () => '/v1/interactions?engine=gemini',
  'GET /v1/interactions by label': () => '/v1/interactions?label=half=yes',
  'GET /v1/interactions, overdue': () => '/v1/interactions?overdue=true',
  'GET /v1/audit': () => '/v1/audit',
};
const STREAMS = {
  'GET /v1/changes until it is ready': '/v1/changes',
  'GET /v1/interactions/events until it is ready': '/v1/interactions/events',
};

export default {
  name: 'growth-runs',
  of: 'runs',
  title: 'Stored runs: the store of one host, and the routes',
  description:
    'A tenth of the runs waits with a question, a tenth is queued, one engine has few runs, one label has few and ' +
    'another has half of them. The rows without a method are calls of the store; deletions include the files of a ' +
    `run. PARLEY_GROWTH_SIZES sets other sizes, such as 1000000, and at least ${LEAST_RUNS}.`,
  sizes: RUN_SIZES,
  onceSizes: [500, 2000],
  plots: [
    {
      title: 'Everyday work with many stored runs',
      unit: 'ms',
      rows: ['GET /metrics', 'GET /v1/runs', 'GET /v1/interactions', 'delete a run', 'retention, for each run'],
    },
  ],
  measure: async ({ size, record }) => {
    const folder = newFolder();
    const path = join(folder, 'data');
    await (await openDataDir(path, { pid: process.pid })).close();
    await fillRuns(join(path, 'parley.db'), path, size);
    for (let number = 0; number < Math.min(size, 2 * LEAST_RUNS); number += 1)
      if (isEnded(number)) fillFolder(path, runId(number));
    const data = await openDataDir(path, { pid: process.pid });
    try {
      await measureRoutes(data, size, record);
      const deps = { store: data.store, dataDir: data.path, ...singleHost(data.store) };
      await measureStore({ store: data.store, size, deps }, record);
    } finally {
      await data.close();
      removeFolder(folder);
    }
  },
  aims: (of, rows) => {
    const atAim = rows.map(({ cells, ...row }) => ({ ...row, cells: cells.filter(({ size }) => size === AIM_RUNS) }));
    const { name, stall } = worstStall(atAim);
    const [metrics, deletion, each] = ['GET /metrics', 'delete a run', 'retention, for each run'].map((row) =>
      of(row, 'median', AIM_RUNS),
    );
    const minutes = (each * AIM_RUNS) / 60_000;
    return [
      {
        aim: 'nothing stalls the server for more than 50 ms with 100,000 runs and 10,000 questions',
        got: `${format(stall)} ms (${name})`,
        reached: stall <= 50,
      },
      { aim: '/metrics in less than 20 ms with 100,000 runs', got: `${format(metrics)} ms`, reached: metrics < 20 },
      { aim: 'delete in less than 10 ms with 100,000 runs', got: `${format(deletion)} ms`, reached: deletion < 10 },
      {
        aim: 'retention of 100,000 runs in less than 10 minutes, computed from the time for each run',
        got: `${format(minutes)} minutes`,
        reached: minutes < 10,
      },
    ];
  },
};

// The service without an orchestrator: nothing is recovered or started.
async function measureRoutes(data, size, record) {
  const orchestrator = { residents: 0, wakeups: new CommitWakeups(data.store), isRecovering: () => false };
  const service = await openService({ data, orchestrator, token: TOKEN, root: data.path });
  const measure = async (name, path, until) => {
    const read = () => readResponse(`${service.url}${path}`, { headers: HEADERS, until });
    record(name, await watchEach(REPETITIONS, read));
  };
  try {
    // The first response also waits for what the service does only once.
    await readResponse(`${service.url}/v1/runs`, { headers: HEADERS });
    for (const [name, toPath] of Object.entries(ROUTES)) await measure(name, toPath(size));
    for (const [name, path] of Object.entries(STREAMS)) await measure(name, path, 'event: ready');
  } finally {
    await service.close();
    orchestrator.wakeups.close();
  }
}
