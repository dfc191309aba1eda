// Webhooks of a real server: their content, their signature, and that neither a failing receiver nor a killed server
// loses or duplicates a transition.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import {
  createSite,
  listRuns,
  parley,
  start,
  untilFree,
  untilGone,
  withData,
  type Running,
  type Site,
} from '../support/command.js';

const SECRET = 'a secret that nobody guesses';
const TOKEN = 'prl_0f8Kd2mQx7Vb4Zt9Lw1Ns6Hc3Rj5Yg';
const HOUR_MS = 3_600_000;

interface Post {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: {
    readonly id: string;
    readonly type: string;
    readonly run_id: string;
    readonly seq: number;
    readonly digest: string;
    readonly interaction: { readonly interaction_id: string } | null;
  };
  answer(status: number): void;
}

// Each post waits until the test has received and answered it.
class Receiver {
  readonly #server: Server;
  readonly #arrived: Post[] = [];
  readonly #waiting: ((post: Post) => void)[] = [];
  readonly all: Post[] = [];

  constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/in`;
  }

  async #take(
    request: Parameters<typeof text>[0] & { readonly headers: IncomingHttpHeaders },
    response: ServerResponse,
  ): Promise<void> {
    const body = await text(request);
    const post = {
      headers: request.headers,
      text: body,
      body: JSON.parse(body) as Post['body'],
      answer: (status: number) => void response.writeHead(status).end(),
    };
    this.all.push(post);
    const waiting = this.#waiting.shift();
    if (waiting) waiting(post);
    else this.#arrived.push(post);
  }

  next(): Promise<Post> {
    const post = this.#arrived.shift();
    return post ? Promise.resolve(post) : new Promise((resolve) => void this.#waiting.push(resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const receivers: Receiver[] = [];
afterEach(() => {
  for (const receiver of receivers.splice(0)) receiver.close();
});

async function openReceiver(site: Site, settings: object = {}): Promise<Receiver> {
  const receiver = new Receiver();
  receivers.push(receiver);
  mkdirSync(site.data, { recursive: true });
  writeFileSync(
    join(site.data, 'config.json'),
    JSON.stringify({
      ...settings,
      webhooks: [{ name: 'test', url: await receiver.listen(), secret_env: 'HOOK_SECRET' }],
    }),
  );
  return receiver;
}

interface Served {
  readonly url: string;
  readonly child: Running;
}

async function serve(site: Site): Promise<Served> {
  const child = start(site, ['serve', '--port', '0', '--json'], { env: { HOOK_SECRET: SECRET, PARLEY_TOKEN: TOKEN } });
  await child.waitFor('\n');
  return { child, url: (JSON.parse(readFileSync(join(site.data, 'server.json'), 'utf8')) as { url: string }).url };
}

async function kill({ child }: Served): Promise<void> {
  child.child.kill('SIGKILL');
  await child.ended;
  await untilGone(child.child.pid ?? 0);
}

interface Wire {
  readonly run_id: string;
  readonly status: string;
  readonly rasp_seq: number;
  readonly digest: string;
}

async function call({ url }: Served, method: string, path: string, body?: object): Promise<Wire> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = (await response.json()) as Wire;
  expect(response.ok, JSON.stringify(answer)).toBe(true);
  return answer;
}

// Like an independent receiver, without our code.
async function expectSigned({ headers, text: signedText }: Post): Promise<void> {
  const key = await crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(SECRET),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  const mac = await crypto.subtle.sign(
    'HMAC',
    key,
    new TextEncoder().encode(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${signedText}`),
  );
  expect(headers['webhook-signature']).toBe(`v1,${btoa(String.fromCharCode(...new Uint8Array(mac)))}`);
  expect(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp']))).toBeLessThan(60);
}

// Recorded, so that a kill does not change the next ids.
async function untilTries(site: Site, tries: number): Promise<void> {
  await expect
    .poll(() => withData(site, async ({ store }) => (await store.nextDelivery(Date.now() + HOUR_MS))?.tries), {
      timeout: 30_000,
    })
    .toBe(tries);
}

test('a question and the end arrive once, signed, with digest, despite receiver errors and server kills', async () => {
  const site = createSite();
  const receiver = await openReceiver(site);
  const first = await serve(site);
  const { run_id: runId } = await call(first, 'POST', '/v1/runs', {
    engine: 'rehearsal',
    execution_mode: 'interactive',
    prompt: '[[ask Which?|A|B]][[done {"n":1}]]',
    labels: { team: 'core' },
  });
  const asked = await receiver.next();
  await expectSigned(asked);
  const waiting = await call(first, 'GET', `/v1/runs/${runId}`);
  expect(asked.body).toMatchObject({
    type: 'run.waiting_user',
    run_id: runId,
    status: 'waiting_user',
    engine: 'rehearsal',
    labels: { team: 'core' },
    interaction: { prompt: 'Which?' },
    error: null,
    seq: waiting.rasp_seq,
    digest: waiting.digest,
  });
  expect(waiting.status).toBe('waiting_user');
  expect(asked.body).toMatchObject({
    url: expect.stringMatching(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/runs/${runId}$`)) as string,
  });
  asked.answer(500);
  await untilTries(site, 1);
  await kill(first);

  // It is sent again, and the server dies before it receives the confirmation.
  const second = await serve(site);
  const again = await receiver.next();
  await expectSigned(again);
  expect([again.headers['webhook-id'], again.text]).toEqual([asked.headers['webhook-id'], asked.text]);
  await kill(second);

  const third = await serve(site);
  const arrived = await receiver.next();
  await expectSigned(arrived);
  arrived.answer(204);
  await call(third, 'POST', `/v1/runs/${runId}/interaction/reply`, {
    interaction_id: asked.body.interaction?.interaction_id,
    response: 'A',
  });
  const ended = await receiver.next();
  await expectSigned(ended);
  const over = await call(third, 'GET', `/v1/runs/${runId}`);
  expect(ended.body).toMatchObject({
    type: 'run.succeeded',
    run_id: runId,
    status: 'succeeded',
    attempt_number: 2,
    interaction: null,
    seq: over.rasp_seq,
    digest: over.digest,
  });
  expect(ended.text).not.toContain('"n":1');
  ended.answer(200);
  third.child.child.kill('SIGTERM');
  const { code, stdout, stderr } = await third.child.ended;
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain(SECRET);

  expect(receiver.all.map(({ body }) => [body.type, body.id])).toEqual([
    ...[asked, again, arrived].map(() => ['run.waiting_user', asked.body.id]),
    ['run.succeeded', ended.body.id],
  ]);
  expect(asked.body.id).toMatch(/^dlv_[0-9A-Z]{26}$/);
  expect(await withData(site, ({ store }) => store.countDeliveries())).toEqual({ pending: 0, given_up: 0 });
});

test('the next server notifies about a command-line run, and the metrics count pending deliveries', async () => {
  const site = createSite();
  const receiver = await openReceiver(site);
  expect((await parley(site, ['run', 'rehearsal', '[[fail]]'])).code).toBe(1);
  await untilFree(site);
  expect([receiver.all, await withData(site, ({ store }) => store.countDeliveries())]).toEqual([
    [],
    { pending: 1, given_up: 0 },
  ]);
  const served = await serve(site);
  const failed = await receiver.next();
  await expectSigned(failed);
  expect(failed.body).toMatchObject({ type: 'run.failed', error: { code: 'ENGINE_TURN_FAILED' } });
  const metrics = await fetch(`${served.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect(await metrics.text()).toContain('parley_webhook_deliveries{state="pending"} 1');
  failed.answer(200);
});

test('a run that retention deletes at the start is still announced', async () => {
  const site = createSite();
  const receiver = await openReceiver(site, { retention: { ended_after_days: 1e-9 } });
  expect((await parley(site, ['run', 'rehearsal', '[[done 1]]', '--scratch'])).code).toBe(0);
  await untilFree(site);
  const [run] = await listRuns(site);
  await serve(site);
  await expect.poll(async () => (await listRuns(site)).length, { timeout: 30_000 }).toBe(0);
  await expect.poll(() => existsSync(join(site.data, 'runs', run?.run_id ?? '')), { timeout: 30_000 }).toBe(false);
  const post = await receiver.next();
  expect(post.body).toMatchObject({
    type: 'run.succeeded',
    run_id: run?.run_id,
    seq: run?.heads.rasp_seq,
    digest: run?.heads.digest,
  });
  post.answer(200);
});

test('a server whose webhook has no secret does not start and says why', async () => {
  const site = createSite();
  await openReceiver(site);
  const { code, stdout, stderr } = await parley(site, ['serve', '--port', '0']);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('Webhook "test": the environment variable HOOK_SECRET has no secret in it');
});
