// A check that another host runs: it may wait and take long as long as that host sends lines, and every caller gets the
// result in the form that it asked for.
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { ReadableStream } from 'node:stream/web';
import Fastify from 'fastify';
import { beforeAll, beforeEach, afterAll, expect, onTestFinished, test } from 'vitest';
import { makeHostIdentity } from '../../src/ownership/postgres/host-identity.js';
import type { Timers } from '../../src/process/timers.js';
import type { RunRecord } from '../../src/store/store.js';
import { refuseInOneForm } from '../../src/service/api/error-envelope.js';
import { PATIENCE_MS, type OtherHosts } from '../../src/service/evidence/forward-files.js';
import { forwardVerify } from '../../src/service/evidence/forward-verify.js';
import { CommandBench } from '../support/command-bench.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { challengeIn, listenAsOtherProgram } from '../support/other-program.js';

let bench: CommandBench;
let run: RunRecord;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(async () => {
  bench.reset();
  run = await bench.queued();
});
afterAll(() => bench.close());

const WAITING = { type: 'waiting', checks_before: 1 };
const RESULT = { ok: true, checks: [] };
const FAILED = { code: 'VERIFY_FAILED', message: 'no', values: { run: 'r', reason: 'm' }, details: { error_id: 'e' } };
const line = (value: object) => `${JSON.stringify(value)}\n`;

// This host, which has no files, and another one whose check the test plays.
async function open(check: (response: ServerResponse) => void) {
  const identity = makeHostIdentity();
  const other = await listenAsOtherProgram((request, response) => {
    const challenge = challengeIn(request.url);
    if (challenge === '') check(response);
    else response.end(JSON.stringify({ host_id: 'host_1', proof: identity.prove(challenge, 'host_1') }));
  });
  const hosts = {
    token: 'secret',
    isHere: async () => false,
    whereIs: async () => ({ host_id: 'host_1', url: other.url, public_key: identity.publicKey }),
  } as unknown as OtherHosts;
  const timers = new SimulatedTimers();
  let waits = 0;
  const counted: Timers = { set: (ms, fire) => ((waits += 1), timers.set(ms, fire)) };
  const app = Fastify({ forceCloseConnections: true });
  refuseInOneForm(app);
  app.get('/v1/runs/:id/verify', { preHandler: forwardVerify(bench.store, hosts, counted) }, async () => 'here');
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => app.close());
  const verify = (query = '', signal?: AbortSignal) =>
    fetch(`${app.listeningOrigin}/v1/runs/${run.run_id}/verify${query}`, signal ? { signal } : {});
  return { timers, verify, waits: () => waits };
}

test('a check lasts as long as lines come, and a plain caller gets only the result', async () => {
  const opened = new Gate();
  let other: ServerResponse | null = null;
  const { timers, verify, waits } = await open((response) => {
    other = response;
    response.write(line(WAITING));
    opened.open();
  });
  const response = verify();
  await opened.opened;
  // In total several times as long as a silent host gets.
  for (let count = 2; count < 7; count += 1) {
    // Set at the start and after each line.
    await expect.poll(waits).toBe(count);
    timers.advance(PATIENCE_MS - 1);
    (other as ServerResponse | null)?.write(line(WAITING));
  }
  (other as ServerResponse | null)?.end(line({ type: 'result', run_id: run.run_id, ...RESULT }));
  const answer = await response;
  expect([answer.status, await answer.json()]).toEqual([200, { run_id: run.run_id, ...RESULT }]);
  expect(timers.lengths()).toEqual([]);
});

test('a caller that asks for the progress gets every line', async () => {
  const lines = line(WAITING) + line({ type: 'result', run_id: run.run_id, ...RESULT });
  const { verify } = await open((response) => void response.end(lines));
  const answer = await verify('?progress=true');
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  expect(await answer.text()).toBe(lines);
});

test('an error of the check is a refusal for a plain caller, and a line among others', async () => {
  const lines = line(WAITING) + line({ type: 'error', error: FAILED });
  const { verify } = await open((response) => void response.end(lines));
  const answer = await verify();
  expect([answer.status, await answer.json()]).toEqual([503, { error: FAILED }]);
  expect(answer.headers.get('retry-after')).toBe('5');
  expect(await (await verify('?progress=true')).text()).toBe(lines);
});

test('a refusal of the other host is passed on', async () => {
  const body = JSON.stringify({ error: { code: 'TOO_MANY_REQUESTS', message: 'no' } });
  const { verify } = await open(
    (response) => void response.writeHead(429, { 'content-type': 'application/json' }).end(body),
  );
  for (const query of ['', '?progress=true']) {
    const answer = await verify(query);
    expect([answer.status, await answer.text()]).toEqual([429, body]);
  }
});

test('a host that falls silent is abandoned, and the waiting caller gets an error', async () => {
  const closed = new Gate();
  const { timers, verify } = await open((response) => {
    response.once('close', closed.open);
    response.write(line(WAITING));
  });
  const answer = await verify('?progress=true');
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(line(WAITING));
  reader.releaseLock();
  timers.advance(PATIENCE_MS);
  const rest = await text(answer.body as ReadableStream);
  expect(JSON.parse(rest)).toMatchObject({ type: 'error', error: { code: 'FILES_UNREACHABLE' } });
  await closed.opened;
});

test('a host that breaks off is a refusal for a plain caller', async () => {
  const { verify } = await open((response) => {
    response.write(line(WAITING), () => response.destroy());
  });
  const answer = await verify();
  expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
    503,
    'FILES_UNREACHABLE',
  ]);
});

test('a check that nobody waits for any more is given up on the other host', async () => {
  const [opened, closed] = [new Gate(), new Gate()];
  const { verify } = await open((response) => {
    response.once('close', closed.open);
    response.write(line(WAITING));
    opened.open();
  });
  const leave = new AbortController();
  const checking = verify('', leave.signal).catch(() => null);
  await opened.opened;
  leave.abort();
  await closed.opened;
  await checking;
});
