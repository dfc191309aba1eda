// What runs that wait for a person cost, and what is left of them after the server was killed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childrenOf, memoryOf, shareOf } from './lib/cost.mjs';
import { now, sum, tell } from './lib/figures.mjs';
import { readFrames } from './lib/frames.mjs';
import { peer } from './lib/peers.mjs';
import { newFolder, post, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const FILL = fileURLToPath(new URL('./lib/fill-waiting.mjs', import.meta.url));
const WAITING = 10_000;
const OTHERS = 50;
const THREAD = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';

export default {
  name: 'waiting', ids: ['B6', 'B7'], title: `${WAITING.toLocaleString('en')} runs that wait for a person, and a SIGKILL`,
  says: `Parley with ${WAITING.toLocaleString('en')} waiting runs, written through its store and all with one conversation of the engine, as so many turns would take an hour; sandbox-agent with ${OTHERS} real ones (each is a process that lives). The server is killed with SIGKILL and started again by the same command; the time is from the kill until an answer to one of the questions was accepted, and then all are counted: for Parley those that the inbox lists, for sandbox-agent those whose answer is taken.`,
  figures: {
    'KiB/waiting run': { better: 'less', says: 'memory of server and engines, above a server with none' },
    'processes/waiting run': { better: 'less' },
    'ms to ready': { better: 'less', says: 'from SIGKILL until the server is ready again' },
    'ms to answered': { better: 'less', says: 'from SIGKILL until an answer was accepted' },
    'recovered %': { better: 'more' },
    'applied twice': { better: 'less', says: 'answers that were accepted a second time' },
  },
  plots: ['KiB/waiting run', 'recovered %'],
  async open() {
    const folder = newFolder();
    await fill(folder);
    const empty = newFolder();
    return {
      systems: [
        { who: 'Parley', round: () => killParley(folder, empty) },
        ...(peer('sandbox-agent') ? [{ who: peer('sandbox-agent').name, round: killSandboxAgent }] : []),
      ],
      close: async () => [folder, empty].forEach(removeFolder),
    };
  },
  aims: (of) => [
    { aim: '10,000 waiting runs answerable within a second of a SIGKILL', got: `${tell(of('Parley', 'ms to answered'))} ms, ${tell(of('Parley', 'recovered %'))} % there`, reached: of('Parley', 'ms to answered') < 1000 && of('Parley', 'recovered %') === 100 },
    { aim: 'less than 50 KiB and no process for each', got: `${tell(of('Parley', 'KiB/waiting run'))} KiB, ${tell(of('Parley', 'processes/waiting run'))} processes`, reached: of('Parley', 'KiB/waiting run') < 50 && of('Parley', 'processes/waiting run') === 0 },
  ],
};

// Through the store, as so many turns of an engine would take an hour. All have the same conversation, which is there.
async function fill(folder) {
  mkdirSync(join(folder, '.codex', 'sessions', '2026', '01', '01'), { recursive: true });
  writeFileSync(join(folder, '.codex', 'sessions', '2026', '01', '01', `rollout-2026-01-01T00-00-00-${THREAD}.jsonl`), '{}\n');
  const child = spawn(process.execPath, [FILL, folder, String(WAITING)], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [, signal] = await once(child, 'exit');
  if (signal !== 'SIGKILL') throw new Error('the data directory was not filled');
}

async function killParley(folder, empty) {
  const none = await startParley(empty);
  const base = memoryOf(none.pid);
  await none.stop();
  const before = await startParley(folder);
  const { interactions } = await before.client.inbox({ limit: 500 });
  const { run_id: runId, interaction_id: id } = interactions[Math.floor(Math.random() * interactions.length)];
  const begin = now();
  await before.kill();
  const server = await startParley(folder);
  const ready = now() - begin;
  const send = () => post(`${server.url}/v1/runs/${runId}/interaction/reply`, { interaction_id: id, response: 'go on' }, 'POST', server.headers);
  const accepted = await send();
  const answered = now() - begin;
  if (accepted.status >= 300) throw new Error(`the answer was not accepted: ${accepted.text}`);
  const again = await send();
  let count = 0;
  for (let cursor; ; ) {
    const page = await server.client.inbox({ limit: 500, ...(cursor ? { cursor } : {}) });
    count += page.interactions.length;
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  const expected = expectedLeft -= 1;
  const { length: processes } = childrenOf(server.pid);
  const figures = { 'KiB/waiting run': Math.max(0, ((memoryOf(server.pid) - base) * 1024) / WAITING), 'processes/waiting run': Math.max(0, processes - 1) / WAITING, 'ms to ready': ready, 'ms to answered': answered, 'recovered %': (100 * count) / expected, 'applied twice': again.status < 300 ? 1 : 0 };
  await server.kill();
  return figures;
}

// Each round answers one of them.
let expectedLeft = WAITING;

async function killSandboxAgent() {
  const folder = newFolder();
  const server = await startSandboxAgent(folder);
  const base = memoryOf(server.pid);
  const turns = [];
  for (let number = 0; number < OTHERS; number += 1) {
    const session = await server.open(`w${number}`);
    const asked = readFrames(server.stream(`w${number}`), { onFrame: (_id, frame) => frame.includes('session/request_permission') });
    turns.push(server.prompt(`w${number}`, session, '[[ask]]').catch(() => null));
    await asked;
  }
  const processes = childrenOf(server.pid);
  const memory = memoryOf(server.pid) - base + sum(processes.map((pid) => shareOf(pid) ?? 0));
  const begin = now();
  await server.kill();
  const next = await startSandboxAgent(folder);
  const ready = now() - begin;
  let recovered = 0;
  for (let number = 0; number < OTHERS; number += 1) {
    const { status } = await next.answer(`w${number}`, 'ask', { outcome: { outcome: 'selected', optionId: 'allow' } });
    if (status < 300) recovered += 1;
  }
  await next.stop();
  await Promise.all(turns);
  removeFolder(folder);
  return { 'KiB/waiting run': (memory * 1024) / OTHERS, 'processes/waiting run': processes.length / OTHERS, 'ms to ready': ready, 'recovered %': (100 * recovered) / OTHERS };
}
