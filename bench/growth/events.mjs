// How costs grow with the number of events of one run: reading late ones, answering, checking, and recovering the run
// after a SIGKILL in the middle of its turn.
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { childrenOf, peakOf } from '../lib/cost.mjs';
import { format, median, now } from '../lib/figures.mjs';
import { readResponse } from '../lib/open-service.mjs';
import { startMeasured } from '../lib/restarts.mjs';
import { timeEach } from '../lib/stalls.mjs';
import { newFolder, removeFolder } from '../lib/systems.mjs';

const REPETITIONS = 20;
const ANSWERS = 5;
const BYTES = 40;
const PAGE = 200;
const LOOK_MS = 50;
const POLL_MS = 20;
const LONGEST_MS = 10 * 60_000;
const ASK = '[[ask Go on?|yes]]';
const LISTENS = 'SIGKILL in mid-turn: until it listens';
const ENDED = 'SIGKILL in mid-turn: until the run is ended';
const VERIFY = 'verify, for each event';
const PEAK = 'verify, peak memory';
const AIM_EVENTS = 1_000_000;

export default {
  name: 'growth-events',
  of: 'events',
  title: 'Events of one run',
  description:
    `A rehearsal prints so many messages of ${BYTES} bytes in one turn and then asks. "verify" runs over HTTP, in a ` +
    'process of its own, whose peak memory is measured; the time for a run with a few events is subtracted. For the ' +
    'last rows, another run of as many events hangs, and the server is killed with SIGKILL and started again: it ' +
    'listens when `GET /healthz` succeeds for the first time.',
  sizes: [10_000, 100_000, 1_000_000],
  onceSizes: [1000, 10_000],
  plots: [
    {
      title: 'One run with many events',
      unit: 'ms',
      rows: ['history, last page', 'stream from a late cursor, first event', 'reply', LISTENS, ENDED],
    },
    { title: 'verify of one run, per event', unit: 'µs', rows: [VERIFY] },
  ],
  measure: async ({ size, record }) => {
    const folder = newFolder();
    try {
      const server = await startMeasured(folder);
      await measureWaitingRun(server, size, record);
      await hang(server, size).then((runId) => measureRecovery(folder, runId, record));
    } finally {
      removeFolder(folder);
    }
  },
  aims: (of) => [
    {
      aim: 'the server listens within a second after a SIGKILL in the middle of a run with 1,000,000 events',
      got: `${format(of(LISTENS, 'median', AIM_EVENTS))} ms`,
      reached: of(LISTENS, 'median', AIM_EVENTS) < 1000,
    },
  ],
};

async function measureWaitingRun(server, size, record) {
  const { client, url, headers, stall } = server;
  const { run_id: id } = await server.create(`[[events ${size} ${BYTES}]]${ASK}`, {
    engine: 'rehearsal',
    execution_mode: 'interactive',
    runtime_options: { max_attempt: 1000 },
  });
  await server.waitUntilIdle(id, 'waiting_user');
  const { rasp_seq: last } = await client.get(id);
  if (last < size) throw new Error(`the run has ${last} of ${size} events`);
  const agent = new Agent({ keepAlive: false });
  const read = (path, until) => readResponse(`${url}/v1/runs/${id}${path}`, { headers, agent, until });
  const measure = async (name, count, work) => {
    for (let number = 0; number < 3; number += 1) await work();
    await stall();
    const values = await timeEach(count, work);
    record(name, { values, stall: await stall() });
  };
  await measure('the run as it is', REPETITIONS, () => read(''));
  await measure('history, last page', REPETITIONS, () => read(`/rasp/history?from_seq=${last - PAGE}`));
  await measure('stream from a late cursor, first event', REPETITIONS, () =>
    read(`/rasp?cursor=${last - PAGE}`, `id: ${last - PAGE + 1}\n`),
  );
  await stall();
  const replies = [];
  for (let number = 0; number < ANSWERS; number += 1) {
    const { interaction_id: interaction } = (await client.get(id)).interaction;
    const began = now();
    await client.reply(id, { interaction_id: interaction, response: ASK });
    replies.push(now() - began);
    await server.waitUntilIdle(id, 'waiting_user');
  }
  record('reply', { values: replies, stall: await stall() });
  await measureCheck(server, id, size, record);
}

async function measureCheck({ client, pid, stall, ...server }, id, size, record) {
  const check = async (runId) => {
    const began = now();
    const { ok } = await client.verify(runId);
    if (!ok) throw new Error(`run ${runId} does not verify`);
    return now() - began;
  };
  const { run_id: short } = await server.create('[[done 1]]', { engine: 'rehearsal' });
  await server.waitUntilIdle(short);
  const bare = median([await check(short), await check(short), await check(short)]);
  await stall();
  let peak = 0;
  // The server has no other children while its runs wait.
  const timer = setInterval(() => {
    for (const child of childrenOf(pid) ?? []) peak = Math.max(peak, peakOf(child) ?? 0);
  }, LOOK_MS);
  const ms = await check(id).finally(() => clearInterval(timer));
  record(VERIFY, { unit: 'µs', values: [(Math.max(0, ms - bare) * 1000) / size], stall: await stall() });
  if (peak > 0) record(PEAK, { unit: 'MiB', values: [peak] });
}

// A run that has stored so many events and is still running when the server is killed.
async function hang(server, size) {
  const { run_id: id } = await server.create(`[[events ${size} ${BYTES}]][[hang]]`, { engine: 'rehearsal' });
  const began = now();
  for (;;) {
    const { rasp_seq: stored, status } = await server.client.get(id);
    if (status !== 'running' && status !== 'queued') throw new Error(`the run is ${status}`);
    if (stored >= size) break;
    if (now() - began > LONGEST_MS) throw new Error(`only ${stored} of ${size} events were stored`);
    await pause(POLL_MS);
  }
  await server.kill();
  return id;
}

async function measureRecovery(folder, id, record) {
  const server = await startMeasured(folder);
  try {
    // What it did before it listened made nobody wait.
    await server.stall();
    record(LISTENS, { values: [server.listening] });
    while ((await server.client.get(id)).status === 'running') {
      if (now() - server.began > LONGEST_MS) throw new Error(`the run was not ended within ${LONGEST_MS} ms`);
      await pause(POLL_MS);
    }
    record(ENDED, { values: [now() - server.began], stall: await server.stall() });
  } finally {
    await server.stop();
  }
}
