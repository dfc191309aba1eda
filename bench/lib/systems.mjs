// Starts the systems as processes, each on the same engine: a server of Parley with all its storage, one of
// sandbox-agent, and a turn through the Codex SDK. If only the system is measured, it and the engine each have their
// own core.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as send } from 'node:http';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createClient } from '../../dist/client/index.js';
import { now } from './figures.mjs';
import { newerNode, peer } from './peers.mjs';

const ENGINE = fileURLToPath(new URL('./engine.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
const TOKEN = 'prl_2Lx8Vn4Qb9Tf6Rw1Zk7Hc3Mj5Pg0Yd';
const CAN_PIN = process.platform === 'linux' && spawnSync('taskset', ['-c', '1', 'true']).status === 0;

export const isPinned = CAN_PIN;
const folders = new Set();
const servers = new Set();

export function newFolder() {
  const path = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  folders.add(path);
  return path;
}

export function removeFolder(path) {
  rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  folders.delete(path);
}

// Removes leftovers of a failed bench, which would be measured with the next one.
export async function clearUp() {
  for (const child of servers) await over(child, 'SIGKILL');
  servers.clear();
  for (const path of folders) removeFolder(path);
}

// The engine as one program, on the first core. `program` replaces the script that all systems are measured with.
export function engineIn(folder, { pinned = false, program = '' } = {}) {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'codex');
  const command = program ? `'${program}'` : `'${process.execPath}' '${ENGINE}'`;
  writeFileSync(path, `#!/bin/sh\nexec ${pinned && CAN_PIN ? 'taskset -c 0 ' : ''}${command} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

function startPinned(command, args, options, pinned) {
  return pinned && CAN_PIN ? spawn('taskset', ['-c', '1', command, ...args], options) : spawn(command, args, options);
}

// Keeps the measuring process and its children on the core of the engine, until unpinMyself().
export function pinMyself() {
  if (CAN_PIN) spawnSync('taskset', ['-a', '-c', '-p', '0', String(process.pid)]);
}

export function unpinMyself() {
  if (CAN_PIN) spawnSync('taskset', ['-a', '-c', '-p', `0-${cpus().length - 1}`, String(process.pid)]);
}

// With PARLEY_BENCH_BEFORE=FOLDER, benches that compare versions also measure the built tree of that folder. Scripts
// that import the program are those of that tree (`script`).
export function earlierVersion() {
  const folder = process.env.PARLEY_BENCH_BEFORE;
  if (!folder) return null;
  return {
    who: 'earlier version',
    program: join(folder, 'bin', 'parley.js'),
    script: (name) => join(folder, 'bench', 'lib', name),
  };
}

const REPORT_STALLS = new URL('./report-stalls.mjs', import.meta.url).href;

// PARLEY_BENCH_PROF=FOLDER writes profiles of the servers. `port`: 0 is any free one. `reportsStalls`: the server also
// has stall().
export async function startParley(
  folder,
  {
    pinned = false,
    slots = 2,
    port = 0,
    reportsStalls = false,
    config = {},
    engine: script = '',
    program = PROGRAM,
    profiles = process.env.PARLEY_BENCH_PROF,
  } = {},
) {
  const data = join(folder, 'data');
  const cwd = join(folder, 'work');
  mkdirSync(data, { recursive: true });
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(data, 'config.json'), JSON.stringify({ slots, workspace_roots: [cwd], ...config }));
  const engine = engineIn(join(folder, 'bin'), { pinned, program: script });
  const child = startPinned(
    process.execPath,
    [
      ...(profiles ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : []),
      ...(reportsStalls ? ['--import', REPORT_STALLS] : []),
      program,
      'serve',
      '--port',
      String(port),
      '--json',
      '--log-level',
      'error',
      '--data',
      data,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit', ...(reportsStalls ? ['ipc'] : [])],
      env: { PATH: process.env.PATH, HOME: folder, PARLEY_TOKEN: TOKEN, PARLEY_CODEX_BIN: engine },
    },
    pinned,
  );
  servers.add(child);
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error('the server did not start'))),
  ]);
  const { url } = JSON.parse(line);
  const headers = { authorization: `Bearer ${TOKEN}` };
  const client = createClient({ url, token: TOKEN });
  return {
    url,
    headers,
    client,
    pid: child.pid,
    data,
    create: (prompt, more = {}) => client.create({ engine: 'codex', prompt, execution_mode: 'auto', cwd, ...more }),
    // Polls rarely. A run that ends in another state is not a measurement.
    waitUntilIdle: async (runId, wanted = 'succeeded') => {
      for (;;) {
        const { status, error } = await client.get(runId);
        if (status === wanted) return;
        if (status !== 'queued' && status !== 'running')
          throw new Error(`run ${runId} is ${status} instead of ${wanted}: ${error?.message ?? ''}`);
        await pause(20);
      }
    },
    // The longest time in ms for which its event loop stood still since the last call.
    stall: async () => {
      child.send('stall');
      const [{ stall }] = await once(child, 'message');
      return stall;
    },
    kill: () => over(child, 'SIGKILL'),
    stop: () => over(child, 'SIGTERM'),
  };
}

// A separate server for this work.
export async function withServer(start, work, options) {
  const folder = newFolder();
  const server = await start(folder, options);
  try {
    return await work(server, folder);
  } finally {
    await server.stop();
    removeFolder(folder);
  }
}

async function over(child, signal) {
  servers.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}

export async function startSandboxAgent(folder, { pinned = false, engine: script = '' } = {}) {
  const { path } = peer('sandbox-agent');
  // For this agent name it requires only the program that speaks ACP.
  const programs = join(folder, '.local', 'share', 'sandbox-agent', 'bin', 'agent_processes');
  mkdirSync(programs, { recursive: true });
  const engine = engineIn(join(folder, 'bin'), { pinned, program: script });
  writeFileSync(join(programs, 'pi-acp'), `#!/bin/sh\nexec '${engine}'\n`);
  chmodSync(join(programs, 'pi-acp'), 0o755);
  const port = await freePort();
  const child = startPinned(
    path,
    ['server', '-H', '127.0.0.1', '-p', String(port), '-n', '--no-telemetry'],
    { stdio: 'ignore', cwd: folder, env: { PATH: process.env.PATH, HOME: folder } },
    pinned,
  );
  servers.add(child);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries += 1) {
    if (
      await post(`${url}/v1/health`, null, 'GET').then(
        ({ status }) => status === 200,
        () => false,
      )
    )
      break;
    if (tries === 2000) throw new Error('sandbox-agent does not answer');
    await pause(5);
  }
  let ids = 0;
  const ask = (server, method, params, query = '') =>
    post(`${url}/v1/acp/${server}${query}`, { jsonrpc: '2.0', id: (ids += 1), method, params });
  return {
    url,
    pid: child.pid,
    ask,
    stream: (server) => `${url}/v1/acp/${server}`,
    // A session in a process of its own.
    open: async (server) => {
      await ask(server, 'initialize', { protocolVersion: 1, clientCapabilities: {} }, '?agent=pi');
      return JSON.parse((await ask(server, 'session/new', { cwd: folder, mcpServers: [] })).text).result.sessionId;
    },
    prompt: (server, sessionId, text) => ask(server, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
    answer: (server, id, result) => post(`${url}/v1/acp/${server}`, { jsonrpc: '2.0', id, result }),
    kill: () => over(child, 'SIGKILL'),
    stop: () => over(child, 'SIGTERM'),
  };
}

export function post(url, body, method = 'POST', headers = {}) {
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      { method, headers: { ...(body === null ? {} : { 'content-type': 'application/json' }), ...headers } },
      (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('data', (part) => (text += part))
          .on('end', () => resolve({ status: response.statusCode, text }))
          .on('error', reject);
      },
    ).on('error', reject);
    request.end(body === null ? undefined : JSON.stringify(body));
  });
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

// One turn through the Codex SDK, with each event as it comes.
export async function openCodexSdk(folder, { pinned = false } = {}) {
  const { Codex } = await import(peer('codex-sdk').path);
  const codex = new Codex({
    codexPathOverride: engineIn(join(folder, 'bin'), { pinned }),
    env: { PATH: process.env.PATH, HOME: folder },
  });
  return async (prompt, onEvent) => {
    const { events } = await codex
      .startThread({ skipGitRepoCheck: true, workingDirectory: folder })
      .runStreamed(prompt);
    for await (const event of events) onEvent(event);
  };
}

// Runs a command of acpx; returns when each line with an event was printed.
export async function runAcpx(folder, args, { pinned = false } = {}) {
  const engine = engineIn(join(folder, 'bin'), { pinned });
  const child = startPinned(
    newerNode(),
    [peer('acpx').path, '--agent', engine, '--cwd', folder, '--format', 'json', ...args],
    { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: folder } },
    pinned,
  );
  const times = [];
  createInterface({ input: child.stdout }).on(
    'line',
    (line) => line.includes('agent_message_chunk') && times.push(now()),
  );
  await once(child, 'close');
  return times;
}

// A prompt to a recorded session.
export async function recordWithAcpx(folder, prompt) {
  await runAcpx(folder, ['sessions', 'new'], { pinned: true });
  const times = await runAcpx(folder, ['prompt', prompt], { pinned: true });
  // Closes the process that waits for the next prompt.
  await runAcpx(folder, ['sessions', 'close'], { pinned: true });
  return times;
}
