// One server for a long time: many runs, a fifth of which ask, watched by twenty clients. Checks whether the server
// grows and whether a client misses an event or receives one twice. Reports samples per second, and the quarters of the
// runs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { median as medianOf } from './figures.mjs';

const PROGRAM = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
const HEAP = new URL('./soak-heap.mjs', import.meta.url).href;
const RUNS = Number(process.env.PARLEY_SOAK_RUNS ?? 2000);
const CLIENTS = 20;
// Runs that have started and not ended, so that the queue is never empty.
const AT_ONCE = 24;
const SLOTS = 4;
const ASKS_EVERY = 5;
// Enough to fill the cache for readers (16 MiB) within the first quarter of a long soak.
const WORDS = '[[answer Begun.]] [[events 20 2000]]';
// In the first quarter a fresh process fills its caches: only later quarters are judged.
const FLAT = { rss: 0.1, heap: 0.1, fds: 0.05 };
const MB = 1024 * 1024;

// Without samples there is no verdict.
const median = (values) => medianOf(values) ?? Number.NaN;

const line = (name, { first, second, last, slope }, show) =>
  `${name} ${show(first)} in the first quarter, ${show(second)} in the second, ${show(last)} in the last, ` +
  `${slope < 0 ? '-' : '+'}${show(Math.abs(slope))} for 1,000 runs in the second half`;
const mb = (bytes) => `${(bytes / MB).toFixed(1)} MB`;
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

export default async function soak({ runs = RUNS, clients: count = CLIENTS, quiet = false } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'parley-soak-'));
  const server = await start(root);
  try {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const call = (method, path, body) => ask(server, agent, method, path, body);
    await call('GET', '/v1/runs');
    const tally = { done: 0, events: 0, lost: 0, duplicate: 0, reconnects: 0, asked: 0, untold: 0 };
    const before = sampleOf(server, tally);
    const samples = [];
    const sampler = setInterval(() => samples.push(sampleOf(server, tally)), 1000);
    const watchers = await Promise.all(Array.from({ length: count }, () => watchRuns(server)));
    const inbox = await answerAll(server, call, tally);
    const ended = new Set();
    await playAll(runs, async (number) => {
      const asks = number % ASKS_EVERY === 0;
      const prompt = asks
        ? `${WORDS} [[ask Which one?|first|second]] [[answer After.]] [[done {"n":1}]]`
        : `${WORDS} [[tool ls]] [[answer Two.]] [[done {"n":1}]]`;
      const { run_id: id } = await call('POST', '/v1/runs', {
        engine: 'rehearsal',
        prompt,
        execution_mode: asks ? 'interactive' : 'auto',
        request_id: `soak-${number}`,
      });
      await followRun(server, id, tally);
      const { status } = await call('GET', `/v1/runs/${id}`);
      if (status !== 'succeeded') throw new Error(`run ${id} of the soak is ${status}`);
      ended.add(id);
      tally.done += 1;
    });
    clearInterval(sampler);
    samples.push(sampleOf(server, tally));
    // Each lasting client receives the end of each run once it has read everything that was sent.
    await within(10_000, () => watchers.every(({ ends }) => ends.size >= runs));
    for (const { ends, close } of watchers) {
      for (const id of ended) if (!ends.has(id)) tally.untold += 1;
      close();
    }
    inbox.close();
    agent.destroy();
    let after = sampleOf(server, tally);
    await within(15_000, () => (after = sampleOf(server, tally)).fds <= before.fds);
    if (server.complaints !== '') throw new Error(`the server complained: ${server.complaints.slice(0, 2000)}`);
    const summary = summarise({ runs, count, samples, tally, before, after });
    if (!quiet) printSummary(summary);
    return { samples, summary };
  } finally {
    server.child.kill('SIGTERM');
    await server.exited;
    rmSync(root, { recursive: true, force: true });
  }
}

async function start(root) {
  const data = join(root, 'data');
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, 'config.json'), JSON.stringify({ slots: SLOTS }));
  const child = spawn(
    process.execPath,
    ['--import', HEAP, PROGRAM, 'serve', '--json', '--port', '0', '--log-level', 'warn'],
    {
      cwd: root,
      env: { PATH: process.env.PATH, HOME: root, PARLEY_DATA: data },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    },
  );
  const server = { child, data, exited: once(child, 'exit'), heap: null, complaints: '', url: '', token: '' };
  child.stderr.setEncoding('utf8').on('data', (text) => (server.complaints += text));
  createInterface({ input: child.stdio[3] }).on('line', (line) => (server.heap = JSON.parse(line)));
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    server.exited.then(() => Promise.reject(new Error(`the server did not start: ${server.complaints}`))),
  ]);
  const { url } = JSON.parse(line);
  return Object.assign(server, {
    url,
    token: readFileSync(join(data, 'token'), 'utf8').trim(),
    startedAt: performance.now(),
  });
}

// Runs so many at a time and starts another when one has ended.
async function playAll(runs, play) {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, runs) }, async () => {
      while (next < runs) await play((next += 1));
    }),
  );
}

async function ask({ url, token }, agent, method, path, body) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const sent = request(`${url}${path}`, {
    method,
    agent,
    headers: {
      authorization: `Bearer ${token}`,
      ...(text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}),
    },
  });
  sent.end(text);
  const [response] = await once(sent, 'response');
  let answer = '';
  for await (const chunk of response.setEncoding('utf8')) answer += chunk;
  if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${answer}`);
  return JSON.parse(answer);
}

// Server-sent events as they are on the wire, without retries and without removing duplicates.
async function openStream({ url, token }, path, onFrame) {
  const sent = request(`${url}${path}`, { agent: false, headers: { authorization: `Bearer ${token}` } }).end();
  const [response] = await once(sent, 'response');
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk) => {
    const frames = (rest + chunk).split('\n\n');
    rest = frames.pop();
    for (const frame of frames)
      onFrame(
        Object.fromEntries(
          frame
            .split('\n')
            .filter((line) => line !== '' && !line.startsWith(':'))
            .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
        ),
      );
  });
  response.on('error', () => {});
  return { closed: new Promise((resolve) => void response.once('close', resolve)), close: () => sent.destroy() };
}

// A lasting client, which receives the events of every run.
async function watchRuns(server) {
  const ends = new Set();
  const stream = await openStream(server, '/v1/changes', ({ event, data }) => {
    if (event !== 'run') return;
    const { run_id: id, status } = JSON.parse(data);
    if (status === 'succeeded') ends.add(id);
  });
  return { ends, close: stream.close };
}

// A person who replies to every question at once.
async function answerAll(server, call, tally) {
  const known = new Set();
  return openStream(server, '/v1/interactions/events', ({ event, data }) => {
    if (event !== 'pending') return;
    const { run_id: id, interaction_id: interaction } = JSON.parse(data);
    if (known.has(interaction)) return;
    known.add(interaction);
    tally.asked += 1;
    void call('POST', `/v1/runs/${id}/interaction/reply`, {
      interaction_id: interaction,
      response: 'first',
      idempotency_key: interaction,
    });
  });
}

// Checks the whole conversation of a run: each seq once, in order, up to the one in the end event.
async function followRun(server, id, tally) {
  const read = { seq: 0, end: null };
  while (read.end === null) {
    const stream = await openStream(
      server,
      `/v1/runs/${id}/events?cursor=${read.seq}`,
      ({ id: number, event, data }) => {
        if (event === 'end') read.end = JSON.parse(data).seq;
        if (number === undefined) return;
        const got = Number(number);
        tally.events += 1;
        if (got <= read.seq) tally.duplicate += 1;
        else tally.lost += got - read.seq - 1;
        read.seq = Math.max(read.seq, got);
      },
    );
    await stream.closed;
    if (read.end === null) tally.reconnects += 1;
  }
  tally.lost += Math.max(0, read.end - read.seq);
}

function sampleOf({ child: { pid }, data, heap, startedAt }, { done }) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const figure = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  const sizeOf = (name) => statSync(join(data, name), { throwIfNoEntry: false })?.size ?? 0;
  return {
    seconds: Math.round((performance.now() - startedAt) / 100) / 10,
    done,
    rss: figure('VmRSS') * 1024,
    heap: heap?.heapUsed ?? null,
    fds: readdirSync(`/proc/${pid}/fd`).length,
    threads: figure('Threads'),
    wal: sizeOf('parley.db-wal'),
    database: sizeOf('parley.db'),
  };
}

async function within(ms, reached) {
  for (const limit = performance.now() + ms; !reached() && performance.now() < limit;) await pause(50);
}

function summarise({ runs, count, samples, tally, before, after }) {
  const quarters = (name) => {
    const known = samples.filter((sample) => sample[name] !== null);
    const part = (from, to) =>
      known.filter(({ done }) => done >= from * runs && done <= to * runs).map((sample) => sample[name]);
    return {
      first: median(part(0, 0.25)),
      second: median(part(0.25, 0.5)),
      last: median(part(0.75, 1)),
      slope:
        slopeOf(
          known.filter(({ done }) => done >= runs / 2),
          name,
        ) * 1000,
    };
  };
  const [rss, heap, fds] = ['rss', 'heap', 'fds'].map(quarters);
  const verdict = [
    judge('memory', rss, FLAT.rss),
    judge('heap', heap, FLAT.heap),
    judge('open files', fds, FLAT.fds),
    after.fds <= before.fds
      ? 'all files that were opened are closed'
      : `${after.fds - before.fds} files are still open`,
    tally.lost + tally.duplicate + tally.untold === 0
      ? 'nobody missed an event or got one twice'
      : 'EVENTS WERE LOST OR DOUBLED',
  ].join('; ');
  const { done: _done, ...counts } = tally;
  return {
    runs,
    clients: count,
    seconds: samples.at(-1)?.seconds ?? 0,
    ...counts,
    fdsBefore: before.fds,
    fdsAfter: after.fds,
    rss,
    heap,
    fds,
    verdict,
  };
}

// The slope per run, by least squares.
function slopeOf(samples, name) {
  const [x, y] = [samples.map(({ done }) => done), samples.map((sample) => sample[name])];
  const [mx, my] = [mean(x), mean(y)];
  const spread = x.reduce((sum, value) => sum + (value - mx) ** 2, 0);
  return spread === 0 ? Number.NaN : x.reduce((sum, value, index) => sum + (value - mx) * (y[index] - my), 0) / spread;
}

function judge(what, { second, last }, allowed) {
  const change = last / second - 1;
  if (Number.isNaN(change)) return `${what} not known`;
  return (
    `${what} ${Math.abs(change) <= allowed ? 'flat' : change < 0 ? 'falling' : 'GROWING'} ` +
    `(${change < 0 ? '' : '+'}${(change * 100).toFixed(0)} %)`
  );
}

function printSummary({
  runs,
  clients,
  seconds,
  events,
  lost,
  duplicate,
  untold,
  reconnects,
  asked,
  rss,
  heap,
  fds,
  verdict,
}) {
  console.log(
    `soak: ${runs} runs (${asked} asked) in ${seconds.toFixed(0)} s, ${clients} lasting clients; ${events} events ` +
      `read, ${lost} lost, ${duplicate} twice, ${untold} ends untold, ${reconnects} connections lost`,
  );
  console.log(
    `soak: ${line('memory', rss, mb)}; ${line('heap', heap, mb)}; ` +
      `${line('open files', fds, (value) => value.toFixed(1))}`,
  );
  console.log(`soak: ${verdict}`);
}
