// How long retention takes to delete all runs of a folder, beside a busy server: on demand, because it takes long and
// creates ten files and folders for each run.
import { setMaxListeners } from 'node:events';
import { mkdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';
import { format, now, share } from '../lib/figures.mjs';
import { fillFolder, fillRuns, runId } from '../lib/fill-runs.mjs';
import { readFrames } from '../lib/frames.mjs';
import { buildLightEngine } from '../lib/light-engine.mjs';
import { startMeasured } from '../lib/restarts.mjs';
import { newFolder, removeFolder } from '../lib/systems.mjs';

const DAY_MS = 24 * 3600 * 1000;
const OLD_MS = 7 * DAY_MS;
const TALKERS = 20;
// Ten events every tenth of a second, until the runs are canceled.
const TALK = '[[events 1000000 64]] [[pace 10 100]]';
const POLL_MS = 1000;
const POLL_ONCE_MS = 50;
const LONGEST_MS = 60 * 60_000;
const ALL = 'retention of all runs';
const MADE = /"text":"(\d{13}) x/;
const AIM_RUNS = 100_000;

export default {
  name: 'growth-retention',
  of: 'ended runs',
  title: 'Retention beside a busy server',
  description:
    `A folder of ended runs with their files. A server whose settings delete runs after a day is started on it, and ` +
    `${TALKERS} light engines print ten events every tenth of a second meanwhile, each read by a client. Measured ` +
    'from the start of the server until the last of the old runs is deleted.',
  sizes: [1000, 10_000, AIM_RUNS],
  onceSizes: [100, 300],
  plots: [{ title: 'Retention of all runs', unit: 's', rows: [ALL] }],
  open: async () => ({ engine: buildLightEngine(), close: async () => {} }),
  measure: async ({ size, record, isOnce, context: { engine } }) => {
    const folder = newFolder();
    try {
      await fill(join(folder, 'data'), size);
      await measure(folder, { engine, size, record, pollMs: isOnce ? POLL_ONCE_MS : POLL_MS });
    } finally {
      removeFolder(folder);
    }
  },
  aims: (of) => [
    {
      aim: 'retention of 100,000 runs in less than 10 minutes beside a busy server, measured',
      got: `${format(of(ALL, 'median', AIM_RUNS) / 60)} minutes`,
      reached: of(ALL, 'median', AIM_RUNS) < 600,
    },
  ],
};

async function fill(path, size) {
  mkdirSync(path, { recursive: true });
  await (await openDataDir(path, { pid: process.pid })).close();
  await fillRuns(join(path, 'parley.db'), path, size, { now: Date.now() - OLD_MS, onlyEnded: true });
  for (let number = 0; number < size; number += 1) fillFolder(path, runId(number));
}

async function measure(folder, { engine, size, record, pollMs }) {
  const config = { retention: { ended_after_days: 1 }, shutdown_grace_sec: 0 };
  const server = await startMeasured(folder, { engine, slots: TALKERS, config });
  try {
    const latencies = [];
    const talkers = await startTalkers(server, latencies);
    while ((await countEnded(server)) > 0) {
      if (now() - server.began > LONGEST_MS) throw new Error(`runs are left after ${LONGEST_MS} ms`);
      await pause(pollMs);
    }
    const ms = now() - server.began;
    const stall = await server.stall();
    record(ALL, { unit: 's', values: [ms / 1000], stall });
    record('retention, for each run', { values: [ms / size] });
    // Before the first event nothing is measured.
    if (latencies.length > 0) {
      record('engine to client, p50', { values: [share(latencies, 0.5)] });
      record('engine to client, p99', { values: [share(latencies, 0.99)] });
    }
    await talkers.stop();
  } finally {
    await server.stop();
  }
}

async function startTalkers(server, latencies) {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  setMaxListeners(TALKERS, ended.signal);
  const readings = [];
  for (let number = 0; number < TALKERS; number += 1) {
    const { run_id: id } = await server.create(TALK);
    const onFrame = (_id, frame) => {
      const made = MADE.exec(frame.latin1Slice(0, frame.length))?.[1];
      if (made !== undefined) latencies.push(now() - Number(made) / 1000);
    };
    const { headers } = server;
    readings.push(
      readFrames(`${server.url}/v1/runs/${id}/rasp`, { headers, agent, after: 0, onFrame, signal: ended.signal }),
    );
  }
  return {
    stop: async () => {
      ended.abort();
      await Promise.all(readings);
      agent.destroy();
    },
  };
}

// By the totals, which cost the same however many runs there are.
async function countEnded({ client }) {
  const text = await (await client.request('GET', '/metrics')).text();
  const counts = [...text.matchAll(/^parley_runs\{state="(succeeded|failed)"\} (\d+)/gm)].map(([, , count]) =>
    Number(count),
  );
  if (counts.length !== 2) throw new Error('/metrics has no count of ended runs');
  return counts[0] + counts[1];
}
