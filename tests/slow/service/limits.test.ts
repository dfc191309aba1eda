// The load that one client may cause: lists in short form, limits per token, a deadline for clients that do not read,
// and checks of runs one at a time.
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RUN_ERRORS, STICKY_ERRORS } from '../../../src/contract/error-codes.js';
import { contractFor } from '../../../src/run/waiting/run-contract.js';
import type { Check } from '../../../src/audit/verify-run.js';
import { runFolder } from '../../../src/journal/run-folder.js';
import { MAX_LIST_BYTES } from '../../../src/service/list-page.js';
import { DEFAULT_LIMITS } from '../../../src/service/service.js';
import type { NewRun, RunRecord } from '../../../src/store/store.js';
import { ask, change, flush, newRun } from '../../store/conformance.js';
import { Gate } from '../../support/gate.js';
import { open } from '../../support/raw-http.js';
import { serve, type Served } from '../../support/served.js';

let served: Served;
afterEach(() => served?.close());

const idOf = (number: number): string => `run_${String(number).padStart(26, '0')}`;
const questionOf = (number: number): string => `int_${String(number).padStart(26, '0')}`;

// Stored without a turn: the lists do not depend on the origin of a run.
async function keep(number: number, spec: Partial<NewRun['spec']> = {}): Promise<RunRecord> {
  const outcome = await served.bench.data.store.createRun(
    newRun(number, { run_id: idOf(number), request_id: idOf(number), spec: { ...newRun(number).spec, ...spec } }),
  );
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

async function wait(number: number, question: object, spec: Partial<NewRun['spec']> = {}): Promise<void> {
  const run = await keep(number, spec);
  await served.bench.data.store.append(
    change(run, { set: { status: 'waiting_user' }, ask: ask(questionOf(number), { question: question as never }) }),
  );
}

async function json<T>(path: string, as?: string): Promise<T> {
  const response = await served.fetch(path, as === undefined ? {} : { as });
  expect(response.status, path).toBe(200);
  return (await response.json()) as T;
}

async function expectTooMany(response: Promise<Response>): Promise<void> {
  const { status, headers, body } = await response.then(async (answer) => ({
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as { error: { code: string } },
  }));
  expect([status, body.error.code, headers.get('retry-after')]).toEqual([429, 'TOO_MANY_REQUESTS', '1']);
}

describe('lists', () => {
  beforeEach(async () => {
    served = await serve({ bench: { settings: { runsTurns: false } } });
  });

  interface Listed {
    readonly runs: readonly {
      readonly run_id: string;
      readonly prompt: string;
      readonly truncated: readonly string[];
    }[];
    readonly next_cursor: string | null;
  }

  test('60 runs with prompts of 10 MB are listed in short form, and each can be read whole', async () => {
    const prompt = 'x'.repeat(10_000_000);
    for (let number = 0; number < 60; number += 1) await keep(number, { prompt });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    for (const path of ['/v1/runs?limit=500', '/v1/runs?limit=500', '/v1/runs?limit=7']) {
      const { runs } = await json<Listed>(path);
      expect(runs.map(({ prompt: shown, truncated }) => [shown.length, truncated])).toEqual(
        runs.map(() => [1000, ['prompt']]),
      );
    }
    delay.disable();
    console.info(`longest stall while 60 prompts of 10 MB were listed: ${Math.round(delay.max / 1e6)} ms`);
    const { prompt: whole } = await json<{ prompt: string }>(`/v1/runs/${idOf(3)}`);
    expect(whole.length).toBe(10_000_000);
  });

  test('a question that is too long for the list is named as truncated and read whole by its run', async () => {
    const diff = '+line\n'.repeat(20_000);
    await wait(1, {
      kind: 'approval',
      prompt: 'Change a file?',
      options: [],
      action: { type: 'file_change', changes: [{ path: 'a', diff }] },
    });
    await wait(2, { kind: 'open_text', prompt: 'Which?', options: [] });
    const { interactions } = await json<{ interactions: { question: object; truncated: string[] }[] }>(
      '/v1/interactions',
    );
    expect(interactions.map(({ question, truncated }) => [question, truncated])).toEqual([
      [{ kind: 'approval', prompt: 'Change a file?', options: [] }, ['question']],
      [{ kind: 'open_text', prompt: 'Which?', options: [] }, []],
    ]);
    expect(await json(`/v1/runs/${idOf(1)}/interaction`)).toMatchObject({
      question: { action: { changes: [{ path: 'a', diff }] } },
    });
    expect((await json<Listed>('/v1/runs')).runs.map(({ truncated }) => truncated)).toEqual([[], ['question']]);
  });

  test('the stream of changes shows a large run in short form', async () => {
    const leave = new AbortController();
    const changes = served.client.runChanges({ signal: leave.signal });
    while ((await changes.next()).value?.type !== 'ready');
    await keep(1, { prompt: 'y'.repeat(100_000) });
    expect((await changes.next()).value).toMatchObject({
      type: 'run',
      run: { run_id: idOf(1), prompt: 'y'.repeat(1000), truncated: ['prompt'] },
    });
    leave.abort();
  });

  test('a page ends at its byte limit, and its cursor continues without a gap', async () => {
    const prompt = 'Q'.repeat(15_000);
    for (let number = 0; number < 400; number += 1) await wait(number, { kind: 'open_text', prompt, options: [] });
    for (const [path, key] of [
      ['/v1/runs', 'runs'],
      ['/v1/interactions', 'interactions'],
    ] as const) {
      const ids: string[] = [];
      let pages = 0;
      for (let cursor: string | null = ''; cursor !== null; pages += 1) {
        const text: string = await (
          await served.fetch(`${path}?limit=500${cursor === '' ? '' : `&cursor=${cursor}`}`)
        ).text();
        expect(text.length).toBeLessThan(MAX_LIST_BYTES + 1000);
        const page = JSON.parse(text) as { next_cursor: string | null } & Record<string, { run_id: string }[]>;
        ids.push(...(page[key] ?? []).map(({ run_id: id }) => id));
        cursor = page.next_cursor;
      }
      expect([pages > 1, new Set(ids).size, ids.length]).toEqual([true, 400, 400]);
    }
  });
});

describe('limits per token', () => {
  test('one token may hold a quarter of the streams, and another token still gets one', async () => {
    served = await serve({ limits: { ...DEFAULT_LIMITS, streams: 8 } });
    const [viewer, other] = [served.tokenOf('viewer'), served.tokenOf('viewer')];
    const leave = new AbortController();
    const stream = (as: string) => served.fetch('/v1/changes', { as, signal: leave.signal });
    await Promise.all([stream(viewer), stream(viewer)]);
    await expectTooMany(stream(viewer));
    expect((await stream(other)).status).toBe(200);
    leave.abort();
    await expect.poll(async () => (await served.fetch('/metrics')).text()).toMatch(/^parley_streams 0$/m);
  });

  test('an expensive request too many is refused, one that has ended makes room', async () => {
    const checked = new Gate();
    served = await serve({
      bench: { settings: { runsTurns: false } },
      limits: { ...DEFAULT_LIMITS, expensivePerToken: 1 },
      verify: async () => checked.opened.then(() => []),
    });
    await keep(1);
    const [viewer, other] = [served.tokenOf('viewer'), served.tokenOf('viewer')];
    const statusOf = async (path: string, as: string): Promise<number> => {
      const response = await served.fetch(`/v1/runs/${idOf(1)}/${path}`, { as });
      await response.arrayBuffer();
      return response.status;
    };
    const verifying = served.fetch(`/v1/runs/${idOf(1)}/verify`, { as: viewer });
    for (const path of ['files', 'logs', 'archive', 'rasp/history', 'verify']) {
      await expect.poll(() => statusOf(path, viewer), { message: path }).toBe(429);
      // The previous response may still be closing.
      if (path !== 'verify') await expect.poll(() => statusOf(path, other), { message: path }).toBe(200);
    }
    expect((await served.fetch(`/v1/runs/${idOf(1)}`, { as: viewer })).status).toBe(200);
    checked.open();
    expect((await verifying).status).toBe(200);
    await expect.poll(() => statusOf('files', viewer)).toBe(200);
  });
});

test('a client that does not read is cut off, whatever it was sent', async () => {
  served = await serve({ bench: { settings: { runsTurns: false } }, limits: { ...DEFAULT_LIMITS, writeMs: 500 } });
  let run = await keep(1);
  const { store, path } = served.bench.data;
  // More than the buffers of the system hold.
  for (let seq = 3; seq < 3 + 30 * 2000; seq += 2000) {
    const lines = flush(seq, 2000, null);
    const long = Buffer.from(lines.rasp.bytes.toString().replaceAll('"text"', `"pad":"${'p'.repeat(800)}","text"`));
    await store.append(
      change(run, {
        journal: { ...lines, rasp: { ...lines.rasp, bytes: long }, firstTs: run.heads.ts, lastTs: run.heads.ts },
      }),
    );
    run = (await store.loadRun(run.run_id)) as RunRecord;
  }
  const log = runFolder(path, run.run_id).attempt(1).logs.stdout;
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, '');
  truncateSync(log, 256 * 1024 * 1024);
  const connections = () =>
    new Promise<number>((resolve) => void served.service.app.server.getConnections((_error, count) => resolve(count)));
  for (const address of ['rasp', 'logs', 'archive', 'files/content?path=attempts/1/stdout.log']) {
    const socket = open(served.url).pause();
    socket.write(
      `GET /v1/runs/${run.run_id}/${address} HTTP/1.1\r\nHost: ${new URL(served.url).host}\r\nAuthorization: ` +
        `Bearer ${served.token}\r\n\r\n`,
    );
    await expect.poll(connections, { message: `${address} begins` }).toBeGreaterThan(0);
    await expect.poll(connections, { message: `${address} is cut off` }).toBe(0);
    socket.destroy();
  }
});

describe('checks of runs', () => {
  const CHECKS: readonly Check[] = [{ name: 'digest', ok: true, finding: 'x' }];

  test('run one at a time and are answered', async () => {
    const gates = new Map([1, 2].map((number) => [idOf(number), new Gate()]));
    const started: string[] = [];
    served = await serve({
      bench: { settings: { runsTurns: false } },
      verify: async (runId) => {
        started.push(runId);
        await gates.get(runId)?.opened;
        return CHECKS;
      },
    });
    for (const number of [1, 2]) await keep(number);
    const verify = (number: number) => json<{ ok: boolean }>(`/v1/runs/${idOf(number)}/verify`);
    const first = verify(1);
    await expect.poll(() => started).toEqual([idOf(1)]);
    const second = verify(2);
    gates.get(idOf(1))?.open();
    gates.get(idOf(2))?.open();
    expect(await Promise.all([first, second])).toEqual(
      [1, 2].map((number) => ({ run_id: idOf(number), ok: true, checks: CHECKS })),
    );
    expect(started).toEqual([idOf(1), idOf(2)]);
  });

  test('wait in a bounded queue, and one that nobody waits for is aborted', async () => {
    const signals: AbortSignal[] = [];
    served = await serve({
      bench: { settings: { runsTurns: false } },
      limits: { ...DEFAULT_LIMITS, checks: { total: 2, perCaller: 2 } },
      verify: (_runId, signal) =>
        new Promise((_resolve, reject) => {
          signals.push(signal);
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    });
    for (const number of [1, 2, 3]) await keep(number);
    const leave = new AbortController();
    const verify = (number: number) => served.fetch(`/v1/runs/${idOf(number)}/verify`, { signal: leave.signal });
    const [first, second] = [verify(1), verify(2)];
    await expect.poll(() => signals.length).toBe(1);
    await expect.poll(async () => (await verify(3)).status).toBe(429);
    await expectTooMany(verify(3));
    leave.abort();
    await Promise.allSettled([first, second]);
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test('are stopped when the server stops', async () => {
    const [started, aborted] = [new Gate(), new Gate()];
    served = await serve({
      bench: { settings: { runsTurns: false } },
      verify: (_runId, signal) =>
        new Promise((_resolve, reject) => {
          started.open();
          signal.addEventListener('abort', () => {
            aborted.open();
            reject(signal.reason as Error);
          });
        }),
    });
    await keep(1);
    const verifying = served.fetch(`/v1/runs/${idOf(1)}/verify`).catch(() => null);
    await started.opened;
    await served.service.close();
    await aborted.opened;
    await verifying;
  });
});

describe('addresses and parameters', () => {
  beforeEach(async () => {
    served = await serve({ bench: { settings: { runsTurns: false } } });
    await keep(1);
  });

  test.each(['', ' 1', '+1', '1e3', '0x2', 'zzz', '1.0', '-1', '1_0', '９'])(
    'the cursor or count "%s" is refused with 400 on every route that takes one',
    async (value) => {
      const paths = [
        '/v1/runs?cursor=',
        '/v1/runs?limit=',
        '/v1/interactions?cursor=',
        '/v1/interactions?limit=',
        `/v1/runs/${idOf(1)}/events?cursor=`,
        `/v1/runs/${idOf(1)}/rasp?cursor=`,
        ...['from_seq', 'to_seq', 'limit'].flatMap((name) => [
          `/v1/runs/${idOf(1)}/events/history?${name}=`,
          `/v1/runs/${idOf(1)}/rasp/history?${name}=`,
        ]),
        `/v1/runs/${idOf(1)}/logs?byte_from=`,
        `/v1/runs/${idOf(1)}/logs?attempt=`,
        '/v1/audit?after=',
        '/v1/audit?limit=',
        '/v1/sessions?limit=',
      ];
      for (const path of paths) {
        const response = await served.fetch(path + encodeURIComponent(value));
        expect([path, response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
          path,
          400,
          'INVALID_ARGUMENT',
        ]);
      }
    },
  );

  test('a known address with another method is refused with 405 and the methods it takes', async () => {
    const asked: [string, string, string][] = [
      ['DELETE', '/v1/runs', 'GET, HEAD, POST'],
      ['PUT', `/v1/runs/${idOf(1)}`, 'DELETE, GET, HEAD'],
      ['GET', `/v1/runs/${idOf(1)}/cancel`, 'POST'],
      ['POST', '/v1/interactions', 'GET, HEAD'],
      ['PATCH', '/healthz', 'GET, HEAD'],
      ['POST', `/v1/runs/${idOf(1)}/rasp`, 'GET'],
    ];
    for (const [method, path, allow] of asked) {
      const response = await served.fetch(path, { method });
      expect([
        path,
        response.status,
        response.headers.get('allow'),
        ((await response.json()) as { error: { code: string } }).error.code,
      ]).toEqual([path, 405, allow, 'METHOD_NOT_ALLOWED']);
    }
    expect((await served.fetch('/v1/nope', { method: 'POST' })).status).toBe(404);
    expect((await served.fetch('/v1/runs', { method: 'DELETE', as: null })).status).toBe(401);
  });
});

test.each([false, true])(
  'run error codes are in the API document and the contract, sticky ones by setting (%s)',
  async (sticky) => {
    served = await serve({ contract: contractFor({ sticky }) });
    const codes = [...Object.keys(RUN_ERRORS), ...(sticky ? Object.keys(STICKY_ERRORS) : [])];
    const document = await json<{
      components: { schemas: { RunError: { properties: { code: { enum: string[] } } } } };
    }>('/openapi.json');
    expect(document.components.schemas.RunError.properties.code.enum).toEqual(codes);
    const { run_errors: errors } = await json<{ run_errors: { code: string; meaning: string }[] }>('/v1/contract');
    expect(errors.map(({ code }) => code)).toEqual(codes);
    for (const code of [
      'SESSION_RESUME_FAILED',
      'INTERACTIVE_MAX_ATTEMPT_EXCEEDED',
      'ORCHESTRATOR_RESTART_INTERRUPTED',
    ])
      expect(codes).toContain(code);
  },
);

const offset = (time: string) => time.replace('Z', '+00:00');
const inTokyo = (time: string) =>
  encodeURIComponent(new Date(Date.parse(time) + 9 * 3_600_000).toISOString().replace('Z', '+09:00'));

test('a range from created_at to updated_at holds the first and the last event, in any form of the time', async () => {
  served = await serve();
  const { run_id: id } = await served.client.create({ engine: 'rehearsal', prompt: '[[done]]' });
  await served.bench.orchestrator.waitUntilIdle(id);
  const { created_at: from, updated_at: to, rasp_seq: last } = await served.client.get(id);
  const seqs = async (query: string) =>
    (await json<{ events: { seq: number }[] }>(`/v1/runs/${id}/rasp/history?${query}`)).events.map(({ seq }) => seq);
  const all = Array.from({ length: last }, (_, index) => index + 1);
  expect(await seqs(`from_ts=${from}&to_ts=${to}`)).toEqual(all);
  // A plus sign that was not encoded arrives as a blank.
  expect(await seqs(`from_ts=${offset(from)}&to_ts=${encodeURIComponent(offset(to))}`)).toEqual(all);
  expect(await seqs(`from_ts=${inTokyo(from)}&to_ts=${inTokyo(to)}`)).toEqual(all);
  // To the second, including that second.
  expect(await seqs(`from_ts=${from.slice(0, 19)}Z&to_ts=${to.slice(0, 19)}Z`)).toEqual(all);
  expect((await served.fetch(`/v1/runs/${id}/rasp/history?from_ts=yesterday`)).status).toBe(400);
});
