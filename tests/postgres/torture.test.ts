// Three servers on one database, runs with questions, and a world that kills, stops and cuts off the servers at random, by a seed: every run
// comes to its end, nothing is played twice, nobody who lost a run writes to it, and whoever watches misses nothing.
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { ParleyError } from '../../src/client/parley-error.js';
import { TOKEN, withHosts, type Hosts } from '../support/hosts.js';
import { openPostgresProxy, type PostgresProxy } from '../support/postgres-proxy.js';
import { seededRandom } from '../support/seeded-random.js';
import type { ServerProcess } from '../support/served-process.js';

const RUNS = Number(process.env['PARLEY_HOSTS_RUNS'] ?? 24);
const SEED = Number(process.env['PARLEY_SEED'] ?? 20261116);
const NAMES = ['a', 'b', 'c'];
const LEASE_SEC = 3;

interface Machine {
  server: ServerProcess;
  readonly proxy: PostgresProxy;
  isWell: boolean;
}

const random = seededRandom(SEED);
const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;

class World {
  readonly #hosts: Hosts;
  readonly machines = new Map<string, Machine>();
  readonly deeds: string[] = [];
  isOver = false;

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
  }

  async begin(): Promise<void> {
    for (const name of NAMES) {
      const proxy = await openPostgresProxy(this.#hosts.database.url);
      this.machines.set(name, { server: await this.#hosts.start(name, { url: proxy.url }), proxy, isWell: true });
    }
  }

  // One that answers, as far as is known.
  get url(): string {
    const well = [...this.machines.values()].filter(({ isWell }) => isWell);
    return pick(well.length > 0 ? well : [...this.machines.values()]).server.url;
  }

  async rage(): Promise<void> {
    while (!this.isOver) {
      await pause(500 + random(1500));
      const well = [...this.machines].filter(([, { isWell }]) => isWell);
      // One stays.
      if (well.length < 2 || this.isOver) continue;
      const [name, machine] = pick(well);
      machine.isWell = false;
      void this.#hurt(name, machine).finally(() => (machine.isWell = true));
    }
  }

  async #hurt(name: string, machine: Machine): Promise<void> {
    const deed = pick(['kill', 'stop', 'cut', 'blink'] as const);
    this.deeds.push(`${deed} ${name}`);
    if (deed === 'kill') {
      machine.server.child.kill('SIGKILL');
      await machine.server.ended;
      await pause(random(2000));
      machine.server = await this.#hosts.start(name, { url: machine.proxy.url });
    } else if (deed === 'stop') {
      machine.server.child.kill('SIGSTOP');
      await pause(LEASE_SEC * 1000 + 500 + random(2000));
      machine.server.child.kill('SIGCONT');
    } else {
      machine.proxy.shut();
      await pause(deed === 'blink' ? random(500) : LEASE_SEC * 1000 + 1000 + random(3000));
      machine.proxy.open();
    }
  }

  async heal(): Promise<void> {
    this.isOver = true;
    await expect.poll(() => [...this.machines.values()].every(({ isWell }) => isWell), { timeout: 60_000 }).toBe(true);
  }

  async end(): Promise<void> {
    for (const { proxy } of this.machines.values()) await proxy.close();
  }
}

// Tried on another until one answers it.
async function somewhere<T>(world: World, ask: (client: ReturnType<typeof createClient>) => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask(createClient({ url: world.url, token: TOKEN, wait: async () => {}, fetch: (input, init) => fetch(input, { ...init, signal: AbortSignal.any([AbortSignal.timeout(8000), ...(init?.signal ? [init.signal] : [])]) }) }));
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
      await pause(100);
    }
  }
}

// Everything that is told of a run, from one server after the other, each from where the one before was lost.
async function watch(world: World, runId: string): Promise<number> {
  let seq = 0;
  for (;;) {
    const leave = new AbortController();
    const silence = setTimeout(() => leave.abort(), 60_000);
    try {
      for await (const event of createClient({ url: world.url, token: TOKEN }).events(runId, { cursor: seq, signal: leave.signal, onReconnect: () => leave.abort() })) {
        expect(event.seq).toBe(seq + 1);
        ({ seq } = event);
        silence.refresh();
      }
      if (!leave.signal.aborted) return seq;
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
    } finally {
      clearTimeout(silence);
    }
    await pause(50);
  }
}

async function answerAll(world: World, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    const { interactions } = await somewhere(world, (client) => client.inbox({ limit: 200 }));
    for (const { run_id: runId, interaction_id: id } of interactions) {
      try {
        await somewhere(world, (client) => client.reply(runId, { interaction_id: id, response: 'Yes', idempotency_key: `key-${id}` }));
      } catch (error) {
        if (!(error instanceof ParleyError)) throw error;
        // It ended meanwhile.
        expect(['RUN_NOT_WAITING', 'INTERACTION_STALE', 'RUN_ENDED']).toContain(error.code);
      }
    }
    await pause(200);
  }
}

test(`${RUNS} runs on three hosts that are killed, stopped and cut off come to their end (seed ${SEED})`, async () => {
  const hosts = await withHosts({ files: 'shared', leaseSec: LEASE_SEC, slots: 4 });
  const world = new World(hosts);
  await world.begin();
  let isDone = false;
  const raging = world.rage();
  const ids: string[] = [];
  const answering = answerAll(world, () => isDone);
  for (let number = 0; number < RUNS; number += 1) {
    const prompt = `[[events ${5 + random(40)} 60]] [[ask Go on? | Yes]] [[sleep ${random(1500)}]] [[events 20 60]] [[ask Again? | Yes]] [[done ${number}]]`;
    const { run_id: id } = await somewhere(world, (client) => client.create({ engine: 'rehearsal', prompt, execution_mode: 'interactive', request_id: `torture-${SEED}-${number}` }));
    ids.push(id);
  }
  const watching = Promise.all(ids.map((id) => watch(world, id)));
  await expect.poll(async () => (await hosts.database.query<{ runs: number }>(`SELECT count(*)::int AS runs FROM parley.runs WHERE status IN ('queued', 'running', 'waiting_user')`))[0]?.runs, { timeout: 60_000 + RUNS * 2000, interval: 500 }).toBe(0);
  await world.heal();
  await raging;
  isDone = true;
  await answering;
  const seqs = await watching;
  const runs = await hosts.database.query<{ run_id: string; request_id: string; status: string; error_json: string | null; fcmp_seq: string }>('SELECT run_id, request_id, status, error_json, fcmp_seq FROM parley.runs ORDER BY run_id');
  // Each was created once, and has ended well, or as one whose host went.
  expect(runs).toHaveLength(RUNS);
  for (const { status, error_json: error } of runs) expect(status === 'succeeded' ? 'succeeded' : (JSON.parse(error ?? '{}') as { code?: string }).code).toMatch(/^(?:succeeded|ORCHESTRATOR_RESTART_INTERRUPTED)$/);
  // Nobody missed anything.
  expect(ids.map((id, index) => [id, seqs[index]])).toEqual(ids.map((id) => [id, Number(runs.find((run) => run.run_id === id)?.fcmp_seq)]));
  for (const { run_id: id } of runs) {
    const { events } = await somewhere(world, async (client) => (await (await client.request('GET', `/v1/runs/${id}/rasp/history?limit=5000`)).json()) as { events: { seq: number; attempt_number: number; event: { type: string } }[] });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    for (const type of ['lifecycle.turn.started', 'lifecycle.process.spawned', 'lifecycle.turn.ended', 'interaction.reply.accepted']) {
      const attempts = events.filter(({ event }) => event.type === type).map(({ attempt_number: attempt }) => attempt);
      expect(new Set(attempts).size, `${type} of ${id}`).toBe(attempts.length);
    }
    await expect.poll(async () => (await somewhere(world, (client) => client.verify(id))).checks.filter(({ ok }) => !ok), { timeout: 20_000 }).toEqual([]);
  }
  // Rows of an epoch never come after those of a later one: whoever lost a run wrote nothing more.
  expect(await hosts.database.query(`SELECT run_id, protocol, seq_from FROM (SELECT run_id, protocol, seq_from, epoch, max(epoch) OVER (PARTITION BY run_id, protocol ORDER BY seq_from) AS latest FROM parley.segments) AS each WHERE epoch < latest`)).toEqual([]);
  const ended = runs.filter(({ status }) => status === 'succeeded').length;
  console.log(`${RUNS} runs: ${ended} succeeded, ${RUNS - ended} were cut off with their host; ${world.deeds.length} deeds: ${world.deeds.join(', ')}`);
  await world.end();
}, 120_000 + RUNS * 4000);
