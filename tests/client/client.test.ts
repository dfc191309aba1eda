// The client against a scripted server: it resumes by its cursor, loses nothing, repeats nothing, and knows when to
// give up.
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createClient, type ParleyClient } from '../../src/client/client.js';
import { isType } from '../../src/client/is-type.js';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { ParleyError } from '../../src/client/parley-error.js';
import { readFrames } from '../../src/client/read-frames.js';
import { expectLinear } from '../support/growth.js';

const frame = (seq: number) => `id: ${seq}\ndata: ${JSON.stringify({ seq, text: '漢字 \u2028' })}\n\n`;
const named = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const END = 'event: end\ndata: {}\n\n';

// Each connection gets the next response: text that is sent and then cut off, a status, or no connection at all.
type Answer = string | { readonly status: number; readonly code: string } | 'silence' | Error;

function play(...answers: Answer[]): { client: ParleyClient; asked: string[]; bodies: string[]; pauses: number[] } {
  const asked: string[] = [];
  const bodies: string[] = [];
  const pauses: number[] = [];
  const client = createClient({
    url: 'http://server/',
    token: 'secret',
    wait: async (ms) => void pauses.push(ms),
    fetch: (async (url: string, init: RequestInit) => {
      asked.push(String(url).replace('http://server', ''));
      bodies.push(String(init.body));
      expect(new Headers(init.headers).get('authorization')).toBe('Bearer secret');
      const answer = answers.shift();
      // One reconnect too many is refused for good, instead of retrying forever.
      if (answer === undefined)
        return Response.json({ error: { code: 'RUN_NOT_FOUND', message: 'nobody listens any more' } }, { status: 404 });
      if (answer instanceof Error) throw answer;
      if (typeof answer === 'object')
        // Other servers on the way may add their own members to the error.
        return Response.json(
          { error: { code: answer.code, message: 'no', status: 'UNAVAILABLE' } },
          { status: answer.status },
        );
      return new Response(streamOf(answer, init.signal ?? null));
    }) as typeof fetch,
  });
  return { client, asked, bodies, pauses };
}

function streamOf(text: string, signal: AbortSignal | null): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      if (text === 'silence')
        return void signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}

async function seqs(stream: AsyncGenerator<{ seq: number }>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { seq } of stream) seen.push(seq);
  return seen;
}

afterEach(() => void vi.useRealTimers());

describe('a stream', () => {
  test.each([
    ['CR LF', '\r\n'],
    ['CR', '\r'],
  ])(
    'whose lines end with %s, without spaces and with a byte order mark, is read like any other',
    async (_name, eol) => {
      const text = `\ufeff${frame(1)}${frame(2)}${END}`.replaceAll(': ', ':').replaceAll('\n', eol);
      expect(await seqs(play(text).client.events('run'))).toEqual([1, 2]);
    },
  );

  test('with an event of up to 16 MB in small chunks is read in linear time', async () => {
    const piece = Buffer.alloc(4096, 'x');
    await expectLinear(1024, async (pieces) => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          controller.enqueue(Buffer.from('data: '));
          for (let count = 0; count < pieces; count += 1) controller.enqueue(piece);
          controller.enqueue(Buffer.from('\n\n'));
          controller.close();
        },
      });
      const lengths: number[] = [];
      for await (const frames of readFrames(body, () => {})) lengths.push(...frames.map(({ data }) => data.length));
      expect(lengths).toEqual([pieces * piece.length]);
    });
  });

  test('resumes after each disconnect, without gaps or duplicates', async () => {
    const { client, asked } = play(
      frame(1) + frame(2),
      new Error('refused'),
      frame(2) + frame(3),
      'retry: 1000\n\n: still here\n\n',
      `${frame(4)}id: 5\nda`,
      frame(5) + END,
    );
    const notices: string[] = [];
    expect(await seqs(client.events('run_1', { onReconnect: ({ code }) => notices.push(code) }))).toEqual([
      1, 2, 3, 4, 5,
    ]);
    expect(asked).toEqual([0, 2, 2, 3, 3, 4].map((cursor) => `/v1/runs/run_1/events?cursor=${cursor}`));
    expect(notices).toEqual(Array.from({ length: 5 }, () => 'UNREACHABLE'));
  });

  test('waits longer after each failure, and short again after news', async () => {
    const { client, pauses } = play(...Array.from({ length: 8 }, () => new Error('refused')), frame(1), frame(2) + END);
    await seqs(client.rasp('run_1'));
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 250]);
  });

  test('is not tried again when the server says no, but when it is only busy', async () => {
    await expect(seqs(play({ status: 409, code: 'CURSOR_BEYOND_END' }).client.events('run_1'))).rejects.toMatchObject({
      code: 'CURSOR_BEYOND_END',
      status: 409,
    });
    expect(await seqs(play({ status: 503, code: 'TOO_MANY_STREAMS' }, frame(1) + END).client.events('run_1'))).toEqual([
      1,
    ]);
  });

  test('says so when an event is missing', async () => {
    await expect(seqs(play(frame(1) + frame(3)).client.events('run_1'))).rejects.toThrow('Event 3 came after event 1.');
  });

  test('ends when it is not wanted any more, also while it waits to come back', async () => {
    const leave = new AbortController();
    const { client } = play('silence');
    const reading = seqs(client.events('run_1', { signal: leave.signal }));
    leave.abort();
    expect(await reading).toEqual([]);
  });

  test('is closed after a silence longer than the heartbeat of the server', async () => {
    vi.useFakeTimers();
    const { client, asked } = play('silence', frame(1) + END);
    const reading = seqs(client.events('run_1'));
    await vi.advanceTimersByTimeAsync(44_000);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await reading).toEqual([1]);
  });
});

test('the changes of runs restart after each disconnect, and unknown events are skipped', async () => {
  const begin = named('reset', {}) + named('ready', {});
  const { client, asked } = play(
    begin + named('run', { run_id: 'run_1' }),
    begin + named('later', {}) + named('run', { run_id: 'run_2' }),
    { status: 401, code: 'UNAUTHORIZED' },
  );
  const seen: string[] = [];
  const reading = (async () => {
    for await (const change of client.runChanges()) seen.push(change.type === 'run' ? change.run.run_id : change.type);
  })();
  await expect(reading).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  expect(seen).toEqual(['reset', 'ready', 'run_1', 'reset', 'ready', 'run_2']);
  expect(new Set(asked)).toEqual(new Set(['/v1/changes']));
});

test('frames are read whole wherever the bytes are cut', async () => {
  const bytes = new TextEncoder().encode(`${frame(1)}: still here\n\n${frame(2)}event: end\ndata: {"a":1}\n\n`);
  for (let size = 1; size <= bytes.length; size += 1) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const frames = [];
    for await (const group of readFrames(body, () => {})) frames.push(...group);
    expect(frames).toEqual([
      { id: '1', event: 'message', data: JSON.stringify({ seq: 1, text: '漢字 \u2028' }) },
      { id: '2', event: 'message', data: JSON.stringify({ seq: 2, text: '漢字 \u2028' }) },
      { id: null, event: 'end', data: '{"a":1}' },
    ]);
  }
});

test('a refusal is an error with its code; a foreign response still has its status', async () => {
  const { client } = play({ status: 404, code: 'RUN_NOT_FOUND' });
  const error = await client.get('run_1').catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ParleyError);
  expect(error).toMatchObject({ code: 'RUN_NOT_FOUND', status: 404, passing: false });
  const strange = createClient({
    url: 'http://server',
    wait: async () => {},
    fetch: (async () => new Response('<html>', { status: 502 })) as typeof fetch,
  });
  await expect(strange.get('run_1')).rejects.toMatchObject({ code: 'INTERNAL', status: 502, passing: true });
  await expect(
    play(new Error('fetch failed', { cause: new Error('connect ECONNREFUSED') })).client.cancel('run_1'),
  ).rejects.toThrow('connect ECONNREFUSED');
});

describe('a call', () => {
  const ANSWER = { status: 200, code: '' };

  test.each([
    ['a look', (client: ParleyClient) => client.get('run_1')],
    ['a new run', (client: ParleyClient) => client.create({ engine: 'codex', prompt: 'x' })],
    ['an answer', (client: ParleyClient) => client.reply('run_1', { interaction_id: 'int_1', response: 'x' })],
  ])('that is %s is repeated while nobody answers, with the same body each time', async (_what, call) => {
    const { client, bodies, pauses } = play(
      new Error('refused'),
      { status: 503, code: 'STORE_UNAVAILABLE' },
      new Error('reset'),
      ANSWER,
    );
    await call(client);
    expect(pauses).toEqual([250, 500, 1000]);
    expect(new Set(bodies)).toHaveProperty('size', 1);
    expect(bodies).toHaveLength(4);
  });

  test('has a key of the caller, or one of its own, so that it is applied once', async () => {
    const { client, bodies } = play(ANSWER, ANSWER, ANSWER);
    await client.create({ engine: 'codex', prompt: 'x', request_id: 'mine' });
    await client.create({ engine: 'codex', prompt: 'x' });
    await client.reply('run_1', { interaction_id: 'int_1', response: 'x' });
    const [first, second, third] = bodies.map((body) => JSON.parse(body) as Record<string, string>);
    expect(first?.['request_id']).toBe('mine');
    expect(second?.['request_id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(third?.['idempotency_key']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('to continue or to fork a run names it, with the prompt and the key of the caller', async () => {
    const { client, asked, bodies } = play(ANSWER, ANSWER);
    await client.continueFrom('run/1', { prompt: 'x' });
    await client.fork('run/1', { prompt: 'x', request_id: 'mine' });
    expect(asked).toEqual(['/v1/runs/run%2F1/continue', '/v1/runs/run%2F1/fork']);
    expect(bodies.map((body) => JSON.parse(body) as unknown)).toEqual([
      { prompt: 'x' },
      { prompt: 'x', request_id: 'mine' },
    ]);
  });

  test('is repeated after a truncated response, but not after a response of another program', async () => {
    const bodies: (string | ReadableStream)[] = [
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"run_id":')),
        pull: (controller) => controller.error(new TypeError('terminated')),
      }),
      '{"run_id":"run_1"}',
      '<html>',
    ];
    const client = createClient({
      url: '',
      wait: async () => {},
      fetch: (async () => new Response(bodies.shift())) as typeof fetch,
    });
    expect(await client.create({ engine: 'codex', prompt: 'x' })).toEqual({ run_id: 'run_1' });
    await expect(client.get('run_1')).rejects.toMatchObject({ code: 'INTERNAL', status: 200 });
  });

  test('is given up after several tries; a refused or non-idempotent one is not repeated', async () => {
    const { client, pauses } = play(...Array.from({ length: 7 }, () => new Error('refused')));
    await expect(client.get('run_1')).rejects.toMatchObject({ code: 'UNREACHABLE' });
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000]);
    await expect(
      play({ status: 409, code: 'REPLY_CONFLICT' }, ANSWER).client.reply('run_1', { interaction_id: 'int_1' }),
    ).rejects.toMatchObject({ code: 'REPLY_CONFLICT' });
    for (const call of [
      (c: ParleyClient) => c.cancel('run_1'),
      (c: ParleyClient) => c.retry('run_1'),
      (c: ParleyClient) => c.fork('run_1', { prompt: 'x' }),
      (c: ParleyClient) => c.delete('run_1'),
    ])
      await expect(call(play(new Error('reset'), ANSWER).client)).rejects.toMatchObject({ code: 'UNREACHABLE' });
  });
});

test('an event is delivered by its type, with its data', () => {
  const event: FcmpEvent = {
    protocol_version: 'fcmp/1.0',
    run_id: 'run_1',
    seq: 1,
    ts: '',
    attempt_number: 1,
    rasp_seq: 1,
    type: 'user.input.required',
    data: { interaction_id: 'int_1' },
  };
  expect(isType(event, 'conversation.completed')).toBe(false);
  // As in the documentation; the compiler knows the member.
  expect(isType(event, 'user.input.required') ? event.data.interaction_id.length : 0).toBe(5);
});

test('it runs in a browser: it imports only types from the rest of Parley, and one library without Node', () => {
  const folder = new URL('../../src/client/', import.meta.url);
  for (const name of readdirSync(folder)) {
    const imports = readFileSync(new URL(name, folder), 'utf8').match(/^(?:import|export) .*from .*$/gm) ?? [];
    for (const line of imports)
      if (!/from '(?:\.\/|eventsource-parser')/.test(line))
        expect(line).toMatch(/^(?:import|export) type .*from '\.\.\//);
  }
});

const lines = (...each: readonly object[]) => each.map((line) => `${JSON.stringify(line)}\n`).join('');

describe('a check of a run', () => {
  const waiting = { type: 'waiting', checks_before: 2 };
  const progress = { events: 1, total_events: 2, log_bytes: 0, total_log_bytes: 0 };
  const result = { run_id: 'run', ok: true, checks: [] };

  test('reports how many checks come before it, its progress and its result', async () => {
    const { client, asked } = play(
      lines(waiting, { type: 'progress', ...progress }, { type: 'of a later version' }, { type: 'result', ...result }),
    );
    const reports: unknown[] = [];
    const report = (each: unknown) => void reports.push(each);
    expect(await client.verify('run', { onWaiting: report, onProgress: report })).toEqual(result);
    expect([reports, asked]).toEqual([[2, progress], ['/v1/runs/run/verify?progress=true']]);
  });

  test('without reports only returns its result, and is requested again after a refused connection', async () => {
    const { client, pauses } = play(new Error('refused'), lines(waiting, { type: 'result', ...result }));
    expect(await client.verify('run')).toEqual(result);
    expect(pauses).toHaveLength(1);
  });

  test('rejects with the whole error of its last line', async () => {
    const error = { code: 'VERIFY_FAILED', message: 'no', hint: 'h', values: { run: 'r' }, details: { error_id: 'e' } };
    await expect(play(lines(waiting, { type: 'error', error })).client.verify('run')).rejects.toMatchObject(error);
  });

  test('rejects if the response ends before the result', async () => {
    await expect(play(lines(waiting)).client.verify('run')).rejects.toMatchObject({ code: 'UNREACHABLE' });
  });
});
