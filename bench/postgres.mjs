// Whole servers on one PostgreSQL, compared with one server on SQLite: turns and events a second for 1, 2 and 3 of
// them, and how long an answer takes from one server to a reader at another. All on this machine, with the scripted
// engine, whose processes are most of the work.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '../dist/client/index.js';
import { migratePostgres } from '../dist/store/postgres/connection/open-postgres.js';
import { openServer } from './lib/postgres-server.mjs';

const ROUNDS = 5;
const TURNS = 60;
const TALKERS = 6;
const EVENTS = 20_000;
const ANSWERS = 200;
const TOKEN = 'prl_2Lx8Vn4Qb9Tf6Rw1Zk7Hc3Mj5Pg0Yd';
const program = new URL('../bin/parley.js', import.meta.url).pathname;

export default async function bench() {
  const database = await openServer();
  try {
    await migratePostgres(database.url);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const alone = await play(null, 1);
      rounds.push([alone]);
      for (const count of [1, 2, 3]) rounds.at(-1).push(await play(database.url, count, round === 0));
    }
    const figures = (index, of) => rounds.map((round) => of(round[index], round[0])).toSorted((a, b) => a - b);
    const middle = (index, of) => figures(index, of)[Math.floor(ROUNDS / 2)];
    const spread = (index, of) => `${figures(index, of)[0].toFixed(2)} to ${figures(index, of).at(-1).toFixed(2)}`;
    console.log(
      `the median of ${ROUNDS} rounds, each on all four in turn; ratios are those within a round, with their spread`,
    );
    for (const [index, name] of [
      'SQLite, 1 server',
      'PostgreSQL, 1 server',
      'PostgreSQL, 2 servers',
      'PostgreSQL, 3 servers',
    ].entries()) {
      const ratio = (what) =>
        index === 0
          ? ''
          : ` (${middle(index, (each, alone) => each[what] / alone[what]).toFixed(2)} of SQLite, ` +
            `${spread(index, (each, alone) => each[what] / alone[what])})`;
      console.log(
        `${name}: ${middle(index, ({ turns }) => turns).toFixed(1)} turns/s${ratio('turns')}, ` +
          `${Math.round(middle(index, ({ events }) => events)).toLocaleString('en')} events/s ` +
          `stored${ratio('events')}`,
      );
    }
    const latencies = rounds[0][3].latencies.toSorted((a, b) => a - b);
    const at = (share) => latencies[Math.floor(latencies.length * share)].toFixed(1);
    console.log(
      `an answer given to the second server, of a question of the first, seen at the third: p50 ${at(0.5)} ms, ` +
        `p99 ${at(0.99)} ms (${latencies.length} answers)`,
    );
  } finally {
    await database.stop();
  }
}

async function play(url, count, answers = false) {
  const root = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  const servers = [];
  try {
    for (let number = 0; number < count; number += 1) servers.push(await serve(root, url));
    const { client } = servers[0];
    const create = (prompt, mode = 'auto') => client.create({ engine: 'rehearsal', prompt, execution_mode: mode });
    await ended(client, (await create('[[done 1]]')).run_id);
    const short = await all(client, TURNS, () => create('[[done 1]]'));
    const long = await all(client, TALKERS, () => create(`[[events ${EVENTS} 120]] [[done 1]]`));
    const latencies = answers && count === 3 ? await answer(servers) : [];
    return { turns: TURNS / short.seconds, events: long.events / long.seconds, latencies };
  } finally {
    for (const { child, exit } of servers) {
      child.kill('SIGTERM');
      await exit;
    }
    rmSync(root, { recursive: true, force: true });
  }
}

// Waits until every run has ended. Polls rarely, because polling would be part of the measurement.
async function all(client, count, create) {
  const startedAt = performance.now();
  const runs = await Promise.all(Array.from({ length: count }, create));
  for (const { run_id: id } of runs) await ended(client, id);
  const seconds = (performance.now() - startedAt) / 1000;
  const views = await Promise.all(runs.map(({ run_id: id }) => client.get(id)));
  const failed = views.find(({ status }) => status !== 'succeeded');
  if (failed) throw new Error(`run ${failed.run_id} is ${failed.status}`);
  return { seconds, events: views.reduce((sum, { rasp_seq: seq }) => sum + seq, 0) };
}

async function ended(client, id) {
  while (!['succeeded', 'failed', 'canceled'].includes((await client.get(id)).status)) await pause(20);
}

async function answer([a, b, c]) {
  const latencies = [];
  for (let number = 0; number < ANSWERS; number += 1) {
    const { run_id: id } = await a.client.create({
      engine: 'rehearsal',
      prompt: '[[ask Which?]] [[done 1]]',
      execution_mode: 'interactive',
    });
    let sent = 0;
    for await (const { type, data } of c.client.events(id)) {
      if (type === 'interaction.reply.accepted') latencies.push(performance.now() - sent);
      if (type !== 'user.input.required') continue;
      sent = performance.now();
      void b.client.reply(id, { interaction_id: data.interaction_id, response: 'this' });
    }
  }
  return latencies;
}

async function serve(root, url) {
  const data = join(root, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(join(data, 'config.json'), JSON.stringify({ slots: 4, cluster: { files: 'shared' } }));
  const child = spawn(process.execPath, [program, 'serve', '--json', '--port', '0', '--log-level', 'error'], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: root,
      PARLEY_DATA: data,
      PARLEY_TOKEN: TOKEN,
      ...(url === null ? {} : { PARLEY_DATABASE_URL: url }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  const [line] = await once(createInterface(child.stdout), 'line');
  return { child, exit, client: createClient({ url: JSON.parse(line).url, token: TOKEN }) };
}
