// Events to readers over HTTP: stored events to one reader, compared with a server that only writes the same bytes;
// through the client; live events to a thousand readers; and the time to the first event from a late cursor. The server
// is another process.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '../dist/client/client.js';

const SERVER = fileURLToPath(new URL('./sse-server.mjs', import.meta.url));
const EVENTS = 100_000;
const READERS = 1000;
const BURST = 500;
const ROUNDS = 3;
const FIRSTS = 20;
const TOKEN = 'bench-token-of-sixteen';
const HEADERS = { authorization: `Bearer ${TOKEN}` };

const now = () => Number(process.hrtime.bigint()) / 1e6;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const perSecond = (count, ms) => Math.round(count / (ms / 1000));
const whole = new Intl.NumberFormat('en').format;

// A server with a run of so many events, in another process. `request` sends it an order and resolves with its result.
export async function startSseServer(events = EVENTS) {
  const root = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  const server = fork(SERVER, [root, String(events), TOKEN], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: process.env.PARLEY_BENCH_PROF ? ['--cpu-prof', `--cpu-prof-dir=${process.env.PARLEY_BENCH_PROF}`] : [],
  });
  const close = () => {
    server.kill();
    rmSync(root, { recursive: true, force: true });
  };
  const request = async (order, rest = {}) => {
    server.send({ order, ...rest });
    return (await once(server, 'message'))[0];
  };
  try {
    const [about] = await once(server, 'message');
    const end = async () => {
      await request('end');
      await once(server, 'exit');
    };
    return { ...about, request, end, close };
  } catch (error) {
    close();
    throw error;
  }
}

export default async function benchSse() {
  const server = await startSseServer();
  try {
    const { request } = server;
    await stored(server, request);
    await throughClient(server, request);
    await firstEvent(server);
    await manyReaders(server, request);
    await server.end();
  } finally {
    server.close();
  }
}

// Counts frames and checks that ids are consecutive, without creating strings.
export function read(url, { cursor = 0, agent, onFirst = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    let seq = cursor;
    let rest = null;
    let over = false;
    get(url, { headers: HEADERS, agent }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`answered ${response.statusCode}`));
      response.on('data', (chunk) => {
        const bytes = rest ? Buffer.concat([rest, chunk]) : chunk;
        let at = 0;
        for (let end = bytes.indexOf('\n\n', at); end >= 0; end = bytes.indexOf('\n\n', at)) {
          if (bytes[at] === 0x69) {
            let id = 0;
            for (let digit = at + 4; bytes[digit] !== 0x0a; digit += 1) id = id * 10 + bytes[digit] - 0x30;
            if (id !== seq + 1) return reject(new Error(`${id} came after ${seq}`));
            seq = id;
            onFirst();
            onFirst = () => {};
          } else if (bytes[at] === 0x65) {
            over = true;
          }
          at = end + 2;
        }
        rest = at < bytes.length ? bytes.subarray(at) : null;
      });
      response.on('error', reject);
      response.on('end', () => (over ? resolve(seq) : reject(new Error(`cut off after ${seq}`))));
    }).on('error', reject);
  });
}

async function timed(work) {
  const begin = now();
  const seq = await work();
  return { ms: now() - begin, seq };
}

async function stored({ url, bare, runId, events, bytes }, request) {
  const rows = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const limit = await timed(() => read(bare));
    await request('mark');
    const ours = await timed(() => read(`${url}/v1/runs/${runId}/rasp`));
    const { cpu } = await request('cost');
    for (const { seq } of [limit, ours]) if (seq !== events) throw new Error(`${seq} of ${events} events came`);
    rows.push({ limit: limit.ms, ours: ours.ms, cpu: cpu / events, busy: cpu / 1000 / ours.ms });
  }
  const ours = median(rows.map((row) => row.ours));
  const limit = median(rows.map((row) => row.limit));
  console.log(
    `sse: ${whole(events)} stored events (${Math.round(bytes / events)} bytes each) to one reader: ` +
      `${whole(perSecond(events, ours))} events/s, 0 lost, ${median(rows.map((row) => row.cpu)).toFixed(1)} µs CPU ` +
      `of the server per event; the same bytes from memory ${whole(perSecond(events, limit))} events/s; ratio ` +
      `${(limit / ours).toFixed(2)} (median of ${ROUNDS})`,
  );
  // A profile (PARLEY_BENCH_PROF=FOLDER) shows reading the stored segments, then writing to the socket, then garbage
  // collection.
  console.log(
    `sse: bounded by the server's one thread: it was busy ` +
      `${Math.round(median(rows.map((row) => row.busy)) * 100)} % of that time, mostly with reading stored ` +
      'segments and writing to the socket',
  );
}

async function throughClient({ url, runId, events }, request) {
  const client = createClient({ url, token: TOKEN });
  await request('mark');
  const { ms, seq } = await timed(async () => {
    let last = 0;
    for await (const event of client.rasp(runId)) last = event.seq;
    return last;
  });
  if (seq !== events) throw new Error(`${seq} of ${events} events came`);
  console.log(
    `sse: the same through the client, each event parsed and given one by one: ${whole(perSecond(events, ms))} ` +
      'events/s',
  );
}

async function firstEvent({ url, runId, events }) {
  const agent = new Agent({ keepAlive: true });
  const late = EVENTS - 1000;
  const times = [];
  for (let round = 0; round < FIRSTS; round += 1) {
    // Uses another run each time, so that none is still in memory.
    const cursor = late + round;
    const begin = now();
    await read(`${url}/v1/runs/${runId}/rasp?cursor=${cursor}`, {
      cursor,
      agent,
      onFirst: () => times.push(now() - begin),
    });
  }
  agent.destroy();
  console.log(
    `sse: first event after cursor ${whole(late)} of ${whole(events)}: ${median(times).toFixed(1)} ms (median of ` +
      `${FIRSTS}; the first ${times[0].toFixed(1)} ms)`,
  );
}

async function manyReaders({ url }, request) {
  const { runId } = await request('ask');
  const agent = new Agent({ maxSockets: Infinity });
  const { rss: before } = await request('cost');
  let connected = 0;
  const all = new Promise((resolve) => (connected = { count: 0, resolve }));
  const readers = Array.from({ length: READERS }, () =>
    read(`${url}/v1/runs/${runId}/rasp`, {
      agent,
      onFirst: () => (connected.count += 1) === READERS && connected.resolve(),
    }),
  );
  await Promise.race([all, Promise.all(readers)]);
  const { rss } = await request('cost');
  await request('mark');
  const begin = now();
  const { events } = await request('play', { runId, directives: `[[events ${BURST} 200]]` });
  const lasts = await Promise.all(readers);
  const ms = now() - begin;
  const { cpu, rss: after } = await request('cost');
  if (lasts.some((last) => last !== events)) throw new Error('a reader has not received everything');
  const delivered = events * READERS;
  console.log(
    `sse: ${whole(READERS)} readers of one run, a burst of ${BURST} events: all had all of it after ` +
      `${whole(Math.round(ms))} ms, ${whole(perSecond(BURST * READERS, ms))} deliveries/s, ` +
      `${(cpu / (BURST * READERS)).toFixed(1)} µs CPU of the server per delivery; an idle reader costs ` +
      `${Math.round((rss - before) / READERS / 1024)} KiB, all of them during the burst ` +
      `${Math.round((after - before) / 1024 / 1024)} MiB (${whole(delivered)} events in all, 0 lost)`,
  );
}
