// Runs through parser and store, durable: events per second, the price of the first event, and what waiting runs cost.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createIds } from '../dist/kernel/ids.js';
import { systemClock } from '../dist/kernel/clock.js';
import { Orchestrator } from '../dist/orchestrator/orchestrator.js';
import { systemTimers } from '../dist/process/timers.js';
import { openDataDir } from '../dist/store/sqlite/data-dir.js';

const BIN = fileURLToPath(new URL('../tests/stand-ins/bin/codex', import.meta.url));
const CHILD = fileURLToPath(new URL('./runs-child.mjs', import.meta.url));
const EVENTS = 100_000;
const WAITING = 10_000;
const STARTS = 15;

export default async function benchRuns() {
  const root = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  try {
    await events(join(root, 'events'));
    await firstEvent(join(root, 'first'));
    await waiting(join(root, 'waiting'));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

export async function open(dir, { program = [BIN], onChange = () => {} } = {}) {
  mkdirSync(dir, { recursive: true });
  const data = await openDataDir(join(dir, 'data'), { pid: process.pid });
  const { store } = data;
  const watched = Object.fromEntries(Object.getOwnPropertyNames(Object.getPrototypeOf(store)).filter((name) => name !== 'constructor').map((name) => [name, store[name].bind(store)]));
  watched.commit = async (change) => {
    const outcome = await store.commit(change);
    onChange(change);
    return outcome;
  };
  const host = {
    findProgram: async () => program,
    environment: (_engine, run) => ({ PATH: process.env.PATH, HOME: run.spec.home ?? dir }),
    hasSession: async () => true,
    newSessionId: () => '00000000-0000-4000-8000-000000000001',
  };
  const deps = { store: watched, clock: systemClock, ids: createIds(systemClock), timers: systemTimers, dataDir: data.path, host, queueLimit: 1000 };
  const orchestrator = await Orchestrator.open(deps, { slots: 2, recovery: { queued: 'fail' }, onFailure: (_run, error) => console.error(error) });
  return { data, orchestrator, close: async () => { await orchestrator.close(); await data.close(); } };
}

const prompt = (count) => `[[events ${count} 200]]`;
const now = () => Number(process.hrtime.bigint()) / 1e6;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

// The same stand-in, read and JSON.parsed, and nothing else.
async function bareRead(dir, text) {
  mkdirSync(dir, { recursive: true });
  const begin = now();
  let first = 0;
  let objects = 0;
  let carry = '';
  const child = spawn(BIN, ['exec', '--json', '--skip-git-repo-check', '-C', dir, '-s', 'workspace-write', text], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: dir } });
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (chunk) => {
    first ||= now() - begin;
    const lines = (carry + chunk).split('\n');
    carry = lines.pop();
    for (const line of lines) if (JSON.parse(line).type) objects += 1;
  });
  await once(child, 'close');
  return { ms: now() - begin, first, objects };
}

async function events(dir) {
  const bench = await open(join(dir, 'ours'));
  const rows = [];
  for (let round = 0; round < 3; round += 1) {
    const bare = await bareRead(join(dir, `bare${round}`), `go ${prompt(EVENTS)}`);
    const begin = now();
    const cpu = process.cpuUsage();
    const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: prompt(EVENTS) });
    const run = await bench.orchestrator.settled(runId);
    const ms = now() - begin;
    const used = process.cpuUsage(cpu);
    rows.push({ bare: bare.ms, ours: ms, stored: run.heads.rasp_seq, cpu: (used.user + used.system) / run.heads.rasp_seq });
  }
  await bench.close();
  const ours = median(rows.map((row) => row.ours));
  const bare = median(rows.map((row) => row.bare));
  console.log(`runs: ${EVENTS} events of a stand-in through parser and store (RASP, FCMP and files, durable): ${Math.round(rows[0].stored / (ours / 1000))} events/s, ${median(rows.map((row) => row.cpu)).toFixed(1)} µs CPU per event; reading and JSON.parse alone ${Math.round(EVENTS / (bare / 1000))} events/s; ratio ${(bare / ours).toFixed(2)} (start of the process included in both)`);
}

async function firstEvent(dir) {
  let stored = 0;
  const bench = await open(join(dir, 'ours'), { onChange: (change) => {
    if (!stored && change.journal?.rasp.bytes.includes('lifecycle.session.bound')) stored = now();
  } });
  const ours = [];
  const bare = [];
  for (let round = 0; round < STARTS; round += 1) {
    bare.push((await bareRead(join(dir, `bare${round}`), 'say hello please')).first);
    stored = 0;
    const begin = now();
    const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: 'say hello' });
    await bench.orchestrator.settled(runId);
    ours.push(stored - begin);
  }
  await bench.close();
  console.log(`runs: from create to the first stored event of the engine ${median(ours).toFixed(0)} ms; bare spawn to the first byte ${median(bare).toFixed(0)} ms; added ${(median(ours) - median(bare)).toFixed(0)} ms (median of ${STARTS})`);
}

async function waiting(dir) {
  mkdirSync(dir, { recursive: true });
  await child(['fill', dir, String(WAITING)]);
  const empty = await child(['measure', join(dir, 'empty'), '0']);
  const full = await child(['measure', dir, String(WAITING)]);
  console.log(`runs: ${WAITING} waiting runs after SIGKILL: open and answerable in ${full.openMs.toFixed(0)} ms (an empty directory: ${empty.openMs.toFixed(0)} ms), first answer accepted ${full.replyMs.toFixed(0)} ms later, ${full.pending} pending; memory per waiting run ${((full.rss - empty.rss) / WAITING / 1024).toFixed(2)} KiB; processes 0; all looked after in the background in ${full.recoveredMs.toFixed(0)} ms`);
}

async function child(args) {
  const spawned = spawn(process.execPath, ['--expose-gc', CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  spawned.stdout.on('data', (chunk) => (text += chunk));
  const [code, signal] = await once(spawned, 'close');
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`the child ended with ${code}`);
  return text === '' ? null : JSON.parse(text);
}

