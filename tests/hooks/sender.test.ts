// The sender on a real store with simulated time: schedule, receivers, signature, and the effect of failures.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SendingHook } from '../../src/hooks/load-hooks.js';
import { TRIED_FOR_MS } from '../../src/hooks/schedule.js';
import type { Fetch } from '../../src/hooks/post.js';
import { HookSender } from '../../src/hooks/sender.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { Delivery, RunRecord, Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { change, delivery, flush, newRun, T0 } from '../store/conformance.js';

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const LIMIT_MS = 10 * SECOND;
const REST_MS = 5 * SECOND;

interface Post {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

let dir: string;
let data: DataDir;
let timers: SimulatedTimers;
let now: number;
let runs: number;
const senders: HookSender[] = [];
const servers: Server[] = [];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-hooks-'));
  data = await openDataDir(dir, { pid: process.pid });
  timers = new SimulatedTimers();
  now = T0 + 10_000;
  runs = 0;
});
afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.close(Promise.resolve());
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  await data.close();
  rmSync(dir, { recursive: true });
});

function advance(ms: number): void {
  now += ms;
  timers.advance(ms);
}

const hook = (name: string, url = `http://127.0.0.1:1/${name}`): SendingHook => ({
  name,
  events: ['failed'],
  url,
  key: Buffer.from(`the key of ${name}`),
});

// A run that ends, with these deliveries.
async function endRun(...deliveries: readonly ReturnType<typeof delivery>[]): Promise<RunRecord> {
  const outcome = await data.store.createRun(newRun((runs += 1)));
  if (!outcome.created) throw new Error(outcome.reason);
  await data.store.append(
    change(outcome.run, { now, set: { status: 'failed' }, journal: flush(3, 1, null, now), deliveries }),
  );
  return (await data.store.loadRun(outcome.run.run_id)) as RunRecord;
}

// A receiver. The test answers each post.
class Receiver {
  readonly posts: Post[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #answer: (post: Post, init: RequestInit) => Promise<Response> | Response;

  constructor(
    answer: (post: Post, init: RequestInit) => Promise<Response> | Response = () => new Response(null, { status: 204 }),
  ) {
    this.#answer = answer;
  }

  readonly fetch: Fetch = async (url, init) => {
    const text = String(init.body);
    const post = {
      url,
      headers: init.headers as Record<string, string>,
      text,
      body: JSON.parse(text) as Record<string, unknown>,
    };
    this.posts.push(post);
    for (const look of this.#waiting) look();
    return this.#answer(post, init);
  };

  async count(posts: number): Promise<Post[]> {
    if (this.posts.length < posts) {
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (this.posts.length < posts) return;
          this.#waiting.delete(look);
          resolve();
        };
        this.#waiting.add(look);
      });
    }
    return this.posts;
  }

  ids(): unknown[] {
    return this.posts.map(({ headers }) => headers['webhook-id']);
  }
}

interface Scene {
  readonly sender: HookSender;
  readonly givenUp: [Delivery, string][];
  readonly failed: [string, string, number][];
  readonly failures: unknown[];
  readonly allGivenUp: Gate;
}

function start(fetch: Fetch, hooks: readonly SendingHook[], store: Store = data.store, isShared = false): Scene {
  const [givenUp, failed, failures, allGivenUp]: [[Delivery, string][], [string, string, number][], unknown[], Gate] = [
    [],
    [],
    [],
    new Gate(),
  ];
  const onGivenUp = (delivery: Delivery, error: string): void => {
    givenUp.push([delivery, error]);
    allGivenUp.open();
  };
  const sender = new HookSender(
    {
      store,
      clock: { now: () => now },
      timers,
      fetch,
      isShared,
      onGivenUp,
      onFailed: ({ delivery_id: id }, error, nextAt) => failed.push([id, error, nextAt]),
      log: { error: (error) => failures.push(error) },
    },
    hooks,
  );
  senders.push(sender);
  return { sender, givenUp, failed, failures, allGivenUp };
}

// Until every result is stored.
async function waitUntilIdle(scene: Scene): Promise<void> {
  await scene.sender.close();
}

// Like an independent receiver, without our code.
async function verifies(key: string, { headers, text }: Post): Promise<boolean> {
  const imported = await crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(key),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  );
  const [version, signature = ''] = (headers['webhook-signature'] ?? '').split(',');
  const signed = new TextEncoder().encode(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`);
  return (
    version === 'v1' &&
    crypto.subtle.verify(
      'HMAC',
      imported,
      Uint8Array.from(atob(signature), (char) => char.charCodeAt(0)),
      signed,
    )
  );
}

describe('a delivery', () => {
  test('is posted signed, with its id, the place in the journal and the digest there', async () => {
    const run = await endRun(delivery('dlv_1', 'a', { type: 'run.failed', run_id: 'run_0001', text: 'é 漢字 \u2028' }));
    const receiver = new Receiver();
    const scene = start(receiver.fetch, [hook('a')]);
    const [post] = (await receiver.count(1)) as [Post];
    expect(post.url).toBe('http://127.0.0.1:1/a');
    expect(post.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': 'dlv_1',
      'webhook-timestamp': String(Math.floor(now / 1000)),
    });
    expect(post.body).toEqual({
      id: 'dlv_1',
      type: 'run.failed',
      run_id: 'run_0001',
      text: 'é 漢字 \u2028',
      seq: run.heads.rasp_seq,
      digest: run.heads.digest,
    });
    expect([
      await verifies('the key of a', post),
      await verifies('the key of b', post),
      await verifies('the key of a', { ...post, text: post.text.replace('failed', 'passed') }),
    ]).toEqual([true, false, false]);
    await waitUntilIdle(scene);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 0 });
  });

  test('follows earlier ones of its hook: one at a time, in order, even if added while one is sent', async () => {
    await endRun(delivery('dlv_2', 'a'), delivery('dlv_1', 'a'));
    let [atOnce, most] = [0, 0];
    const gates = new Map(['dlv_1', 'dlv_2', 'dlv_3'].map((id) => [id, new Gate()]));
    const receiver = new Receiver(async ({ body }) => {
      most = Math.max(most, (atOnce += 1));
      await gates.get(String(body['id']))?.opened;
      atOnce -= 1;
      return new Response();
    });
    const scene = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    now += 1;
    await endRun(delivery('dlv_3', 'a'));
    for (const gate of gates.values()) gate.open();
    await receiver.count(3);
    expect([receiver.ids(), most]).toEqual([['dlv_1', 'dlv_2', 'dlv_3'], 1]);
    await waitUntilIdle(scene);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 0 });
  });

  test('is retried after 5 s, 30 s, 2 min, 10 min, 1 h, 6 h, every 12 h, same id, for less than 3 days', async () => {
    await endRun(delivery('dlv_1', 'a'));
    const startedAt = now;
    const tried: number[] = [];
    const receiver = new Receiver(() => {
      tried.push(now);
      return new Response('no', { status: 500 });
    });
    const scene = start(receiver.fetch, [hook('a')]);
    const pauses = [
      5 * SECOND,
      30 * SECOND,
      2 * MINUTE,
      10 * MINUTE,
      HOUR,
      6 * HOUR,
      ...Array.from({ length: 5 }, () => 12 * HOUR),
    ];
    for (const pause of pauses) {
      await timers.armed(pause);
      advance(pause);
    }
    await scene.allGivenUp.opened;
    expect(tried.slice(1).map((at, index) => at - (tried[index] ?? 0))).toEqual(pauses);
    expect((tried.at(-1) ?? 0) - startedAt).toBeLessThan(72 * HOUR);
    expect(new Set(receiver.ids())).toEqual(new Set(['dlv_1']));
    for (const post of receiver.posts) expect(await verifies('the key of a', post)).toBe(true);
    expect(scene.givenUp.map(([{ delivery_id: id }, error]) => [id, error])).toEqual([['dlv_1', 'HTTP 500']]);
    await waitUntilIdle(scene);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 1 });
  });

  test('of a hook that is not configured any more is given up, and nothing is sent', async () => {
    await endRun(delivery('dlv_1', 'gone'), delivery('dlv_2', 'a'));
    const receiver = new Receiver();
    const scene = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    await scene.allGivenUp.opened;
    await waitUntilIdle(scene);
    expect(receiver.ids()).toEqual(['dlv_2']);
    expect(scene.givenUp.map(([{ delivery_id: id }, error]) => [id, error])).toEqual([
      ['dlv_1', 'there is no webhook "gone" any more'],
    ]);
  });

  test('of a hook that only other hosts know is left to them, until it is too old for anybody', async () => {
    await endRun(delivery('dlv_1', 'elsewhere'), delivery('dlv_2', 'elsewhere'), delivery('dlv_3', 'a'));
    const receiver = new Receiver();
    const scene = start(receiver.fetch, [hook('a')], data.store, true);
    await receiver.count(1);
    await waitUntilIdle(scene);
    expect([receiver.ids(), scene.failed, scene.givenUp]).toEqual([['dlv_3'], [], []]);
    const other = start(receiver.fetch, [hook('elsewhere')], data.store, true);
    await receiver.count(3);
    await waitUntilIdle(other);
    expect(receiver.ids().toSorted()).toEqual(['dlv_1', 'dlv_2', 'dlv_3']);
  });

  test('of a hook that nobody knows is given up when it is too old', async () => {
    await endRun(delivery('dlv_1', 'elsewhere'));
    advance(TRIED_FOR_MS + 1);
    const scene = start(new Receiver().fetch, [], data.store, true);
    await scene.allGivenUp.opened;
    expect(scene.givenUp.map(([{ delivery_id: id }]) => id)).toEqual(['dlv_1']);
    await waitUntilIdle(scene);
  });

  test('to one that does not answer ends after 10 seconds and is tried again', async () => {
    await endRun(delivery('dlv_1', 'a'));
    const receiver = new Receiver(
      (_post, { signal }) =>
        new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted')))),
    );
    const scene = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    advance(LIMIT_MS);
    await timers.armed(5 * SECOND);
    expect(scene.failed).toEqual([['dlv_1', 'no answer within 10 s', now + 5 * SECOND]]);
    expect(await data.store.nextDelivery(now + HOUR)).toMatchObject({
      delivery_id: 'dlv_1',
      tries: 1,
      error: 'no answer within 10 s',
      next_at: now + 5 * SECOND,
    });
  });

  test('to a dead hook does not delay those to another', async () => {
    await endRun(delivery('dlv_1', 'dead'), delivery('dlv_2', 'a'), delivery('dlv_3', 'dead'), delivery('dlv_4', 'a'));
    const receiver = new Receiver(({ url }, { signal }) =>
      url.endsWith('a')
        ? new Response()
        : new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted')))),
    );
    start(receiver.fetch, [hook('dead'), hook('a')]);
    await receiver.count(3);
    await endRun(delivery('dlv_5', 'a'));
    await receiver.count(4);
    expect(receiver.ids()).toEqual(['dlv_1', 'dlv_2', 'dlv_4', 'dlv_5']);
    advance(LIMIT_MS);
    await receiver.count(5);
    expect(receiver.ids().at(-1)).toBe('dlv_3');
  });

  test('that was written while nobody was there to send is sent at the start, however old', async () => {
    await endRun(delivery('dlv_1', 'a'));
    now += 300 * 24 * HOUR;
    const receiver = new Receiver();
    const scene = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    await waitUntilIdle(scene);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 0 });
  });
});

describe('what goes wrong', () => {
  test('a delivery that arrived but was not recorded is resent with its id, after a pause or a restart', async () => {
    await endRun(delivery('dlv_1', 'a'));
    const receiver = new Receiver();
    const fails = alterStore(data.store, { finishDelivery: async () => Promise.reject(new Error('the disk is full')) });
    const first = start(receiver.fetch, [hook('a')], fails);
    await timers.armed(REST_MS);
    expect(receiver.ids()).toEqual(['dlv_1']);
    advance(REST_MS);
    await receiver.count(2);
    await timers.armed(REST_MS);
    await first.sender.close();
    const second = start(receiver.fetch, [hook('a')]);
    await receiver.count(3);
    await waitUntilIdle(second);
    expect(receiver.ids()).toEqual(['dlv_1', 'dlv_1', 'dlv_1']);
    expect(first.failures.map(String)).toEqual(['Error: the disk is full', 'Error: the disk is full']);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 0 });
  });

  test('an unreadable store is reported, and read again later', async () => {
    await endRun(delivery('dlv_1', 'a'));
    let broken = true;
    const store = alterStore(data.store, {
      nextDelivery: async (at, except) =>
        broken ? Promise.reject(new Error('locked')) : data.store.nextDelivery(at, except),
    });
    const receiver = new Receiver();
    const scene = start(receiver.fetch, [hook('a')], store);
    await timers.armed(REST_MS);
    broken = false;
    advance(REST_MS);
    await receiver.count(1);
    expect(scene.failures.map(String)).toEqual(['Error: locked']);
  });

  test('a closed sender finishes running deliveries and starts no new ones', async () => {
    await endRun(delivery('dlv_1', 'a'), delivery('dlv_2', 'a'));
    const gate = new Gate();
    const receiver = new Receiver(async () => gate.opened.then(() => new Response()));
    const { sender } = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    const closed = sender.close();
    gate.open();
    await closed;
    expect(receiver.ids()).toEqual(['dlv_1']);
    expect((await data.store.nextDelivery(now))?.delivery_id).toBe('dlv_2');
    expect(timers.lengths()).toEqual([]);
  });

  test('a sender closed at once aborts running deliveries, which are not counted as attempts', async () => {
    await endRun(delivery('dlv_1', 'a'));
    const receiver = new Receiver(
      (_post, { signal }) =>
        new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted')))),
    );
    const { sender } = start(receiver.fetch, [hook('a')]);
    await receiver.count(1);
    await sender.close(Promise.resolve());
    expect(await data.store.nextDelivery(now)).toMatchObject({ delivery_id: 'dlv_1', tries: 0 });
    expect(timers.lengths()).toEqual([]);
  });
});

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`;
}

describe('over a real connection', () => {
  test.each([301, 302, 303, 307, 308])('a redirect (%i) is not followed and counts as a failure', async (status) => {
    let followed = 0;
    const elsewhere = await listen((_request, response) => {
      followed += 1;
      response.end();
    });
    const url = await listen(
      (request, response) =>
        void request.resume().on('end', () => response.writeHead(status, { location: elsewhere }).end()),
    );
    await endRun(delivery('dlv_1', 'a'));
    start(fetch, [hook('a', url)]);
    await timers.armed(5 * SECOND);
    expect(await data.store.nextDelivery(now + HOUR)).toMatchObject({ tries: 1, error: `HTTP ${status}` });
    expect(followed).toBe(0);
  });

  test('nobody who listens is a failure with its reason', async () => {
    const url = await listen(() => {});
    const [server] = servers.splice(0) as [Server];
    await new Promise((resolve) => void server.close(resolve));
    await endRun(delivery('dlv_1', 'a'));
    start(fetch, [hook('a', url)]);
    await timers.armed(5 * SECOND);
    expect((await data.store.nextDelivery(now + HOUR))?.error).toMatch(/no program listens there/);
  });

  test('an endless response is not read: its status decides', async () => {
    const cut = new Gate();
    const url = await listen((request, response) => {
      response.writeHead(200);
      response.on('close', cut.open);
      const more = (): void =>
        void (response.write('x'.repeat(65_536)) ? setImmediate(more) : response.once('drain', more));
      request.resume().on('end', more);
    });
    await endRun(delivery('dlv_1', 'a'));
    const scene = start(fetch, [hook('a', url)]);
    await cut.opened;
    await waitUntilIdle(scene);
    expect(await data.store.countDeliveries()).toEqual({ pending: 0, given_up: 0 });
  });
});
