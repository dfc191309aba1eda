// Two large runs, one of a million events and one with a log of 1 GB: what a check costs on the command line and over
// HTTP, how long the server stands still meanwhile, and how soon the first lines of a run are shown. The server stores
// the runs first, so its database is not cold.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childrenOf, cpuOf, peakOf } from './lib/cost.mjs';
import { startParley, withServer } from './lib/systems.mjs';

const BIN = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const RUNS = { '1,000,000 events': '[[events 1000000 40]]', 'a log of 1 GB': '[[events 16384 65536]]' };
const PROBE_MS = 5;
const LOOK_MS = 50;
const IDLE_MS = 10_000;
const HEAD_LINES = 5;

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const mib = (value) => `${value.toFixed(0)} MiB`;

export default async function benchLargeRuns() {
  await withServer(startParley, async (server, folder) => {
    const env = { PATH: process.env.PATH, HOME: folder, PARLEY_DATA: server.data };
    for (const [name, prompt] of Object.entries(RUNS)) {
      const { run_id: id } = await server.create(`${prompt}[[done 1]]`, { engine: 'rehearsal' });
      await server.settled(id);
      console.log(`${name} (load ${loadavg()[0].toFixed(1)})`);
      const checked = await runCommand(['verify', id], env);
      console.log(`  ${'verify'.padEnd(26)} ${seconds(checked.ms)}, peak ${mib(checked.peak)}`);
      const idle = await probe(server, () => pause(IDLE_MS));
      console.log(`  ${'idle server'.padEnd(26)} ${describe(idle)}`);
      let peak = 0;
      const began = performance.now();
      const meanwhile = await probe(server, async () => {
        const stop = everyLook(() => {
          for (const pid of checksOf(server.pid)) peak = Math.max(peak, peakOf(pid) ?? 0);
        });
        const { ok } = await server.client.verify(id);
        stop();
        if (!ok) throw new Error(`run ${id} does not verify`);
      });
      const ms = performance.now() - began;
      console.log(`  ${'verify over HTTP'.padEnd(26)} ${seconds(ms)}, peak ${mib(peak)}; ${describe(meanwhile)}`);
      for (const args of [['show'], ['replay'], ['replay', '--print'], ['watch', '--no-follow']]) {
        const head = await runCommand([...args, id], env, HEAD_LINES);
        console.log(`  ${`${args.join(' ')} | head -${HEAD_LINES}`.padEnd(26)} ${seconds(head.ms)}`);
      }
    }
  });
}

const describe = ({ longest, own, asked }) =>
  `longest answer of ${asked} to /healthz ${longest.toFixed(0)} ms, most CPU of the server in one ${own.toFixed(0)} ms`;

// Asks /healthz while the work lasts. A long answer in which the server used little CPU shows that the machine was
// busy.
async function probe(server, work) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const probes = { asked: 0, longest: 0, own: 0 };
  const over = new AbortController();
  const probing = (async () => {
    while (!over.signal.aborted) {
      const [began, cpu] = [performance.now(), cpuOf(server.pid)];
      await new Promise((resolve, reject) => {
        get(`${server.url}/healthz`, { agent }, (response) => response.resume().once('end', resolve)).once(
          'error',
          reject,
        );
      });
      const ms = performance.now() - began;
      probes.asked += 1;
      probes.longest = Math.max(probes.longest, ms);
      probes.own = Math.max(probes.own, Math.min(ms, (cpuOf(server.pid) - cpu) / 1000));
      await pause(PROBE_MS);
    }
  })();
  await work().finally(() => over.abort());
  await probing;
  agent.destroy();
  return probes;
}

function everyLook(look) {
  const timer = setInterval(look, LOOK_MS);
  return () => clearInterval(timer);
}

// The server has no other children once its runs have ended.
const checksOf = (pid) => childrenOf(pid) ?? [];

// Closes the output after so many lines, like `head`.
async function runCommand(args, env, lines = Infinity) {
  const began = performance.now();
  const child = spawn(process.execPath, [BIN, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let peak = 0;
  const stop = everyLook(() => (peak = Math.max(peak, peakOf(child.pid) ?? 0)));
  let read = 0;
  child.stdout.on('data', (bytes) => {
    read += bytes.toString().split('\n').length - 1;
    if (read >= lines) child.stdout.destroy();
  });
  const [code] = await once(child, 'close');
  stop();
  if (code !== 0) throw new Error(`parley ${args.join(' ')} exited with ${code}`);
  return { ms: performance.now() - began, peak };
}
