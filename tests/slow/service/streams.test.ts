// Readers of streams under stress: despite any disconnects, each ends with every event once and in order; slow and idle
// readers cost the server next to nothing. PARLEY_STREAM_CLIENTS, _EVENTS and PARLEY_SLOW_EVENTS set larger numbers.
import { execFileSync } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createClient, type ParleyClient } from '../../../src/client/client.js';
import type { RunView } from '../../../src/journal/run-view.js';
import type { CommitWakeups } from '../../../src/journal/wakeups.js';
import { createSite } from '../../support/command.js';
import { openCuttingProxy } from '../../support/cutting-proxy.js';
import { readAsBrowser } from '../../support/event-source.js';
import { open } from '../../support/raw-http.js';
import { seededRandom } from '../../support/seeded-random.js';
import { serve } from '../../support/served.js';
import { startServer } from '../../support/served-process.js';

const CLIENTS = Number(process.env['PARLEY_STREAM_CLIENTS'] ?? 20);
const EVENTS = Number(process.env['PARLEY_STREAM_EVENTS'] ?? 2000);
const SLOW_EVENTS = Number(process.env['PARLEY_SLOW_EVENTS'] ?? 20_000);
const IDLE = 500;
const TURNS = 4;
const MB = 1024 * 1024;
const PATIENCE_MS = 120_000 + (CLIENTS * EVENTS) / 4;

// A reader's digest of its events, comparable with the stored ones, without keeping them.
class Seen {
  readonly #cursor: number;
  readonly #hash: Hash = createHash('sha256');
  #last: number;

  constructor(cursor: number) {
    this.#cursor = cursor;
    this.#last = cursor;
  }

  add(seq: number, text: string | Buffer): void {
    if (seq !== this.#last + 1) throw new Error(`${seq} came after ${this.#last}`);
    this.#last = seq;
    this.#hash.update(text);
  }

  expectAll(stored: readonly string[], form: (line: string) => string): void {
    expect(this.#last).toBe(stored.length);
    const whole = createHash('sha256');
    for (const line of stored.slice(this.#cursor)) whole.update(form(line));
    expect(this.#hash.digest('hex')).toBe(whole.digest('hex'));
  }
}

const asItIs = (text: string): string => text;
const readAgain = (text: string): string => JSON.stringify(JSON.parse(text));

describe(`002-04: of ${CLIENTS} clients and ${EVENTS} events`, () => {
  test(
    'clients cut off at random that reconnect with their cursor get every event once, in order',
    async () => {
      const served = await serve();
      const random = seededRandom(20_260_104);
      const proxy = await openCuttingProxy(served.url, () => 1 + random(EVENTS * 100));
      served.hosts.add(new URL(proxy.url).host);
      try {
        const burst = `[[events ${Math.ceil(EVENTS / TURNS)} 100]]`;
        const { run_id: runId } = await served.client.create({
          engine: 'codex',
          prompt: `${burst} [[ask Go on?|yes]]`,
          execution_mode: 'interactive',
          permission: 'full',
        });
        const readers: Promise<() => Promise<void>>[] = [];
        const join = async (number: number): Promise<void> => {
          const kind = number % 2 === 0 ? 'rasp' : 'fcmp';
          const run = await served.client.get(runId);
          const cursor = random(4) === 0 ? 0 : random((kind === 'rasp' ? run.rasp_seq : run.fcmp_seq) + 1);
          const seen = new Seen(cursor);
          const path = `/v1/runs/${runId}/${kind === 'rasp' ? 'rasp' : 'events'}`;
          const asBrowser = number % 4 < 2;
          const reading = asBrowser
            ? readAsBrowser(`${proxy.url}${path}`, {
                token: served.token,
                cursor,
                onEvent: (seq, data) => seen.add(seq, data),
              })
            : (async () => {
                const client = createClient({ url: proxy.url, token: served.token, wait: () => turn(undefined) });
                for await (const event of kind === 'rasp'
                  ? client.rasp(runId, { cursor })
                  : client.events(runId, { cursor }))
                  seen.add(event.seq, JSON.stringify(event));
              })();
          readers.push(
            reading.then(
              () => async () =>
                seen.expectAll(
                  await served.bench.data.store.readJournal(runId, kind, { limit: 1e9 }),
                  asBrowser ? asItIs : readAgain,
                ),
            ),
          );
        };
        for (let number = 0, at = 1; at <= TURNS; at += 1) {
          // Some join at the start of a turn, while it runs.
          for (; number < (CLIENTS * at) / TURNS; number += 1) await join(number);
          if (at === TURNS) break;
          expect((await served.bench.orchestrator.waitUntilIdle(runId)).status).toBe('waiting_user');
          const { interaction_id: id } = await served.client.interaction(runId);
          await served.client.reply(runId, {
            interaction_id: id,
            response: `${burst} ${at === TURNS - 1 ? '[[done {}]]' : '[[ask Go on?|yes]]'}`,
          });
        }
        const run = await served.bench.orchestrator.waitUntilIdle(runId);
        expect([run.status, run.heads.rasp_seq > EVENTS, run.heads.fcmp_seq > EVENTS]).toEqual([
          'succeeded',
          true,
          true,
        ]);
        for (const check of await Promise.all(readers)) await check();
        expect(proxy.cuts).toBeGreaterThan(CLIENTS);
        await expect
          .poll(() => (served.bench.orchestrator.wakeups as CommitWakeups).watched, { timeout: 30_000 })
          .toBe(0);
      } finally {
        await proxy.close();
        await served.close();
      }
    },
    PATIENCE_MS,
  );
});

// The state of a client that lists at the start, and then only receives changes.
async function followRuns(client: ParleyClient, signal: AbortSignal, known: Map<string, RunView>): Promise<void> {
  const receive = (run: RunView): void => {
    const before = known.get(run.run_id);
    if (!before || before.rasp_seq <= run.rasp_seq) known.set(run.run_id, run);
  };
  for await (const change of client.runChanges({ signal })) {
    if (change.type === 'run') receive(change.run);
    if (change.type === 'ready') for (const run of (await client.list({ limit: 500 })).runs) receive(run);
  }
}

const truth = (all: Iterable<RunView>): string[] =>
  [...all].map((run) => `${run.run_id} ${run.status} ${run.interaction?.interaction_id ?? '-'}`).toSorted();

test('a follower of run changes ends with the current state of all, however often the connection is cut', async () => {
  const served = await serve();
  const random = seededRandom(20_261_116);
  const proxy = await openCuttingProxy(served.url, () => 2000 + random(40_000));
  served.hosts.add(new URL(proxy.url).host);
  const leave = new AbortController();
  try {
    const pictures = Array.from({ length: 5 }, () => new Map<string, RunView>());
    const following = pictures.map((known) =>
      followRuns(
        createClient({ url: proxy.url, token: served.token, wait: () => turn(undefined) }),
        leave.signal,
        known,
      ),
    );
    const prompts = Array.from(
      { length: 24 },
      (_, number) => ['[[answer Done.]]', '[[fail]]', '[[ask Which?|a|b]]'][number % 3] ?? '',
    );
    const runs = await Promise.all(
      prompts.map((prompt) =>
        served.client.create({ engine: 'codex', prompt, execution_mode: 'interactive', permission: 'full' }),
      ),
    );
    for (const { run_id: id } of runs) await served.bench.orchestrator.waitUntilIdle(id);
    const { runs: listed } = await served.client.list({ limit: 500 });
    expect(new Set(listed.map(({ status }) => status))).toEqual(new Set(['waiting_user', 'failed']));
    for (const known of pictures)
      await expect.poll(() => truth(known.values()), { timeout: 60_000 }).toEqual(truth(listed));
    expect(proxy.cuts).toBeGreaterThan(pictures.length);
    leave.abort();
    await Promise.all(following);
  } finally {
    leave.abort();
    await proxy.close();
    await served.close();
  }
});

function memoryOf(pid: number | undefined): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024;
}

describe('memory', () => {
  test(
    `a slow reader loses nothing of ${SLOW_EVENTS} and costs the server less than 64 MB`,
    { timeout: PATIENCE_MS + SLOW_EVENTS * 3 },
    async () => {
      const site = createSite();
      const { client, url, token, child } = await startServer(site);
      const prompt = `[[events ${SLOW_EVENTS} 200]] [[done {}]]`;
      const produce = async (): Promise<string> => (await client.create({ engine: 'rehearsal', prompt })).run_id;
      const ended = (id: string) =>
        expect
          .poll(async () => (await client.get(id)).status, { timeout: PATIENCE_MS, interval: 100 })
          .toBe('succeeded');
      // The cost of producing so many events is not the cost of a reader: these are produced before.
      for (let warm = 0; warm < 2; warm += 1) await ended(await produce());
      const before = memoryOf(child.pid);
      const id = await produce();
      const seen = new Seen(0);
      let most = 0;
      let count = 0;
      let hurry = false;
      const reading = readAsBrowser(`${url}/v1/runs/${id}/rasp`, {
        token,
        onEvent: (seq, data) => {
          count += 1;
          seen.add(seq, data);
        },
        pace: (events) => {
          most = Math.max(most, memoryOf(child.pid));
          return hurry ? null : events;
        },
      });
      await ended(id);
      // All are produced, and the reader is behind; the short form stops a little later.
      expect(count).toBeLessThan(SLOW_EVENTS);
      await expect.poll(() => count, { timeout: PATIENCE_MS, interval: 50 }).toBeGreaterThan(3000);
      hurry = process.env['PARLEY_SLOW_EVENTS'] === undefined;
      await reading;
      most = Math.max(most, memoryOf(child.pid));
      const { rasp_seq: head } = await client.get(id);
      expect(count).toBe(head);
      const stored: string[] = [];
      for (let from: number | null = 1; from !== null;) {
        const page = (await (
          await client.request('GET', `/v1/runs/${id}/rasp/history?limit=5000&from_seq=${from}`)
        ).json()) as { events: object[]; next_seq: number | null };
        stored.push(...page.events.map((event) => JSON.stringify(event)));
        from = page.next_seq;
      }
      seen.expectAll(stored, asItIs);
      expect(most - before).toBeLessThan(64 * MB);
    },
  );

  test(`${IDLE} idle streams of a waiting run cost little and leave nothing behind`, async () => {
    const site = createSite();
    const { client, url, token, child } = await startServer(site);
    const { run_id: id } = await client.create({
      engine: 'rehearsal',
      prompt: '[[ask Which?|a|b]]',
      execution_mode: 'interactive',
    });
    await expect.poll(async () => (await client.get(id)).status, { timeout: 60_000 }).toBe('waiting_user');
    const figures = async () => (await client.request('GET', '/metrics')).text();
    await figures();
    const before = memoryOf(child.pid);
    const sockets = Array.from({ length: IDLE }, (_, number) => {
      const socket = open(url);
      socket.write(
        `GET /v1/${number % 5 === 0 ? 'interactions/events' : number % 5 === 1 ? 'changes' : `runs/${id}/events`} ` +
          `HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      );
      return socket.resume();
    });
    await expect.poll(figures, { timeout: 60_000 }).toContain(`parley_streams ${IDLE}\n`);
    expect(memoryOf(child.pid) - before).toBeLessThan(64 * MB);
    for (const socket of sockets) socket.destroy();
    await expect.poll(figures, { timeout: 60_000 }).toContain('parley_streams 0\n');
  });

  test('streams that were closed are watched no more, however they were closed', async () => {
    const served = await serve();
    try {
      const { run_id: id } = await served.client.create({
        engine: 'codex',
        prompt: '[[ask Which?|a|b]]',
        execution_mode: 'interactive',
        permission: 'full',
      });
      await served.bench.orchestrator.waitUntilIdle(id);
      const wakeups = served.bench.orchestrator.wakeups as CommitWakeups;
      const leave = new AbortController();
      const opened = await Promise.all(
        Array.from({ length: 50 }, (_, number) =>
          served.fetch(`/v1/runs/${id}/${number % 2 ? 'rasp' : 'events'}`, { signal: leave.signal }),
        ),
      );
      expect(wakeups.watched).toBe(1);
      await Promise.all(opened.slice(0, 10).map((response) => response.body?.cancel()));
      leave.abort();
      await expect.poll(() => wakeups.watched, { timeout: 30_000 }).toBe(0);
    } finally {
      await served.close();
    }
  });
});
