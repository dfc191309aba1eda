// Every route over a real socket: responses, refusals, and that the OpenAPI document is correct.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setImmediate as settle } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.js';
import { ParleyError } from '../../../src/client/parley-error.js';
import { runFolder } from '../../../src/journal/run-folder.js';
import type { RaspEvent } from '../../../src/rasp/event.js';
import { createRunBody, interactionView, runView } from '../../../src/service/schemas.js';
import { addToken, removeToken } from '../../../src/service/access/tokens.js';
import { Gate } from '../../support/gate.js';
import { serve, type Served } from '../../support/served.js';

// Routes that are not for programs (pages, sign-in) are not among them.
const ROUTES = [
  'POST /v1/runs',
  'GET /v1/runs',
  'GET /v1/changes',
  'GET /v1/runs/{id}',
  'DELETE /v1/runs/{id}',
  'POST /v1/runs/{id}/cancel',
  'POST /v1/runs/{id}/retry',
  'POST /v1/runs/{id}/continue',
  'POST /v1/runs/{id}/fork',
  'GET /v1/runs/{id}/interaction',
  'POST /v1/runs/{id}/interaction/reply',
  'GET /v1/interactions',
  'GET /v1/interactions/events',
  'GET /v1/runs/{id}/events',
  'GET /v1/runs/{id}/events/history',
  'GET /v1/runs/{id}/rasp',
  'GET /v1/runs/{id}/rasp/history',
  'GET /v1/runs/{id}/logs',
  'GET /v1/runs/{id}/result',
  'GET /v1/runs/{id}/files',
  'GET /v1/runs/{id}/files/content',
  'GET /v1/runs/{id}/archive',
  'GET /v1/runs/{id}/verify',
  'GET /v1/engines',
  'GET /v1/metrics/parsers',
  'GET /v1/contract',
  'GET /v1/me',
  'GET /metrics',
  'GET /healthz',
  'GET /readyz',
  'POST /v1/sign-in',
  'POST /v1/sign-out',
  'GET /v1/sessions',
  'DELETE /v1/sessions/{id}',
  'POST /v1/sign-in-codes',
  'GET /v1/audit',
];
const ASK = '[[ask Which database?|Postgres|SQLite]]';

let served: Served;
beforeAll(async () => {
  served = await serve();
});
afterAll(() => served.close());

const waitUntilIdle = (runId: string) => served.bench.orchestrator.waitUntilIdle(runId);

async function waiting(prompt = ASK, rest: object = {}): Promise<string> {
  const { run_id: runId } = await served.client.create({
    engine: 'codex',
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  expect((await waitUntilIdle(runId)).status).toBe('waiting_user');
  return runId;
}

async function ended(prompt = '[[answer Done.]]'): Promise<string> {
  const { run_id: runId } = await served.client.create({ engine: 'codex', prompt, permission: 'full' });
  expect((await waitUntilIdle(runId)).status).toBe('succeeded');
  return runId;
}

const names = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted();

async function refusal(promise: Promise<unknown>): Promise<{ code: string; status: number }> {
  const error = await promise.then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(ParleyError);
  const { code, status } = error as ParleyError;
  return { code, status };
}

describe('runs', () => {
  test('a run is created once for a key, by the body or by the header, and says where it is', async () => {
    const body = { engine: 'codex', prompt: '[[answer Hi.]]', request_id: 'mine-1', labels: { team: 'a' } };
    const first = await served.client.create(body);
    expect(await served.client.create(body)).toMatchObject({ run_id: first.run_id });
    const { request_id: _key, ...rest } = body;
    const again = await served.fetch('/v1/runs', {
      method: 'POST',
      body: JSON.stringify(rest),
      headers: { 'idempotency-key': 'mine-1' },
    });
    expect(again.status).toBe(201);
    expect(again.headers.get('location')).toBe(`/v1/runs/${first.run_id}`);
    expect(await refusal(served.client.create({ ...body, prompt: 'other' }))).toEqual({
      code: 'REQUEST_ID_CONFLICT',
      status: 409,
    });
    const both = await served.fetch('/v1/runs', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'idempotency-key': 'mine-2' },
    });
    expect(both.status).toBe(400);
    await waitUntilIdle(first.run_id);
  });

  test('the events name who started, answered and canceled a run', async () => {
    const runId = await waiting();
    const { interaction_id: id } = await served.client.interaction(runId);
    const reply = await served.fetch(`/v1/runs/${runId}/interaction/reply`, {
      method: 'POST',
      as: served.tokenOf('replier'),
      body: JSON.stringify({ interaction_id: id, response: ASK }),
    });
    expect(reply.status).toBe(200);
    await waitUntilIdle(runId);
    await served.client.cancel(runId);
    const events = (await served.bench.data.store.readJournal(runId, 'rasp', { limit: 1000 })).map(
      (line) => JSON.parse(line) as RaspEvent,
    );
    const actors = events.filter(({ data }) => 'actor' in data).map(({ event, data }) => [event.type, data['actor']]);
    expect(actors).toEqual([
      ['lifecycle.run.created', { kind: 'user', name: 'ann' }],
      ['interaction.reply.accepted', { kind: 'token', name: expect.stringMatching(/^replier/) }],
      ['lifecycle.state.changed', { kind: 'user', name: 'ann' }],
    ]);
  });

  test('runs are listed page by page, newest first, by state, engine and label', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1)
      ids.unshift(
        (await served.client.create({ engine: 'gemini', prompt: '[[answer x]]', labels: { batch: 'list' } })).run_id,
      );
    for (const id of ids) await waitUntilIdle(id);
    const seen: string[] = [];
    for (let cursor: string | null = null; ;) {
      const page: Awaited<ReturnType<typeof served.client.list>> = await served.client.list({
        label: 'batch=list',
        limit: 2,
        ...(cursor ? { cursor } : {}),
      });
      seen.push(...page.runs.map((run) => run.run_id));
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
    expect(seen).toEqual(ids);
    expect(
      (await served.client.list({ engine: 'gemini', status: 'succeeded', label: 'batch=list' })).runs,
    ).toHaveLength(5);
    expect((await served.client.list({ status: 'failed', label: 'batch=list' })).runs).toEqual([]);
  });

  test('an ended run is tried again, continued and deleted, one that has not ended is not', async () => {
    const runId = await waiting();
    expect(await refusal(served.client.retry(runId))).toEqual({ code: 'RUN_NOT_ENDED', status: 409 });
    expect(await refusal(served.client.delete(runId))).toEqual({ code: 'RUN_NOT_ENDED', status: 409 });
    expect(await served.client.cancel(runId)).toMatchObject({ status: 'canceled', interaction: null });
    const next = await served.client.continueFrom(runId, { prompt: '[[done {}]]', request_id: 'next-1' });
    expect(next).toMatchObject({ continue_from: runId });
    await waitUntilIdle(next.run_id);
    const retried = await served.client.retry(next.run_id);
    await waitUntilIdle(retried.run_id);
    for (const id of [retried.run_id, next.run_id, runId]) await served.client.delete(id);
    expect(await refusal(served.client.get(runId))).toEqual({ code: 'RUN_NOT_FOUND', status: 404 });
  });

  test('a run is forked in any state, once per key in the body or the header; its source is unchanged', async () => {
    const runId = await waiting('[[answer Which one?]]');
    const body = { prompt: '[[done 1]]', request_id: 'fork-1' };
    const forked = await served.client.fork(runId, body);
    expect(forked).toMatchObject({
      fork_from: runId,
      continue_from: null,
      engine: 'codex',
      execution_mode: 'interactive',
      permission: 'full',
    });
    expect(await served.client.fork(runId, body)).toMatchObject({ run_id: forked.run_id });
    const again = await served.fetch(`/v1/runs/${runId}/fork`, {
      method: 'POST',
      body: JSON.stringify({ prompt: '[[done 1]]' }),
      headers: { 'idempotency-key': 'fork-1' },
    });
    expect({ status: again.status, run: await again.json() }).toMatchObject({
      status: 201,
      run: { run_id: forked.run_id },
    });
    expect(await refusal(served.client.fork(runId, { ...body, prompt: 'other' }))).toEqual({
      code: 'REQUEST_ID_CONFLICT',
      status: 409,
    });
    await waitUntilIdle(forked.run_id);
    expect(await served.client.get(forked.run_id)).toMatchObject({ status: 'succeeded', result: 1, fork_from: runId });
    expect(await served.client.get(runId)).toMatchObject({
      status: 'waiting_user',
      attempt_number: 1,
      fork_from: null,
    });
    const events = (await served.bench.data.store.readJournal(forked.run_id, 'rasp', { limit: 1 })).map(
      (line) => JSON.parse(line) as RaspEvent,
    );
    expect(events).toMatchObject([{ data: { fork_from: runId, actor: { kind: 'user', name: 'ann' } } }]);
    await served.client.cancel(runId);
  });

  test('a run that cannot be forked is refused with its code', async () => {
    const { run_id: other } = await served.client.create({ engine: 'gemini', prompt: '[[answer x]]' });
    await waitUntilIdle(other);
    expect(await refusal(served.client.fork(other, { prompt: 'x' }))).toEqual({
      code: 'FORK_UNSUPPORTED',
      status: 409,
    });
    const { run_id: lost } = await served.client.create({ engine: 'codex', prompt: '[[nosession]][[answer x]]' });
    await waitUntilIdle(lost);
    expect(await refusal(served.client.fork(lost, { prompt: 'x' }))).toEqual({ code: 'NO_SESSION', status: 409 });
    expect(await refusal(served.client.fork('run_01M7HEENCB3Q72PDFDW48J2F4K', { prompt: 'x' }))).toEqual({
      code: 'RUN_NOT_FOUND',
      status: 404,
    });
    expect(await refusal(served.client.fork(lost, { prompt: ' ' }))).toEqual({ code: 'INVALID_ARGUMENT', status: 400 });
    const viewer = await served.fetch(`/v1/runs/${lost}/fork`, {
      method: 'POST',
      as: served.tokenOf('replier'),
      body: JSON.stringify({ prompt: 'x' }),
    });
    expect(viewer.status).toBe(403);
  });

  test('a folder within the roots is resolved and accepted, any other is refused, even through a link', async () => {
    const allowed = join(served.root, 'allowed', 'project');
    mkdirSync(allowed, { recursive: true });
    mkdirSync(join(served.root, 'allowed-not'), { recursive: true });
    symlinkSync('/usr', join(served.root, 'allowed', 'out'));
    symlinkSync(allowed, join(served.root, 'allowed', 'in'));
    const at = (cwd: string) => served.client.create({ engine: 'codex', prompt: '[[answer x]]', cwd });
    expect((await at(join(served.root, 'allowed', 'in'))).cwd).toBe(allowed);
    for (const path of [
      '/usr',
      join(served.root, 'allowed', 'out'),
      join(served.root, 'allowed-not'),
      join(allowed, '..', '..'),
      served.root,
    ])
      expect(await refusal(at(path)), path).toEqual({ code: 'PATH_NOT_ALLOWED', status: 403 });
    for (const path of ['project', join(allowed, 'none'), `${allowed}\0`])
      expect(await refusal(at(path)), path).toEqual({ code: 'INVALID_ARGUMENT', status: 400 });
  });

  test('a request that is known is the same run, whatever has become of its folder', async () => {
    const cwd = join(served.root, 'allowed', 'gone');
    mkdirSync(cwd, { recursive: true });
    const body = { engine: 'codex', prompt: '[[done 1]]', cwd, request_id: 'folder-1', permission: 'full' } as const;
    const { run_id: runId } = await served.client.create(body);
    await waitUntilIdle(runId);
    rmSync(cwd, { recursive: true });
    expect((await served.client.create(body)).run_id).toBe(runId);
    expect(await refusal(served.client.create({ ...body, request_id: 'folder-2' }))).toEqual({
      code: 'INVALID_ARGUMENT',
      status: 400,
    });
  });

  test('the server refuses to retry, continue or fork a run whose folder it does not allow', async () => {
    const { run_id: runId } = await served.bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[done 1]]',
      cwd: served.root,
      permission: 'full',
    });
    await waitUntilIdle(runId);
    expect(await refusal(served.client.retry(runId))).toEqual({ code: 'PATH_NOT_ALLOWED', status: 403 });
    expect(await refusal(served.client.continueFrom(runId, { prompt: 'x' }))).toEqual({
      code: 'PATH_NOT_ALLOWED',
      status: 403,
    });
    expect(await refusal(served.client.fork(runId, { prompt: 'x' }))).toEqual({
      code: 'PATH_NOT_ALLOWED',
      status: 403,
    });
  });

  test.each([
    ['an unknown member', { engine: 'codex', prompt: 'x', promt: 'y' }],
    ['no prompt', { engine: 'codex' }],
    ['an empty prompt', { engine: 'codex', prompt: ' ' }],
    ['an unknown engine', { engine: 'none', prompt: 'x' }],
    ['an unknown option', { engine: 'codex', prompt: 'x', runtime_options: { nothing: 1 } }],
    ['a label that is no text', { engine: 'codex', prompt: 'x', labels: { a: 1 } }],
    ['a key with a NUL', { engine: 'codex', prompt: 'x', request_id: 'n\0A' }],
    ['a label with a NUL', { engine: 'codex', prompt: 'x', labels: { 'a\0b': 'x', 'a\0c': 'x' } }],
    ['a name of the language', { engine: 'codex', prompt: 'x', runtime_options: { constructor: 1 } }],
  ])('%s is refused with 400', async (_what, body) => {
    expect((await refusal(served.client.create(body as never))).status).toBe(400);
  });
});

describe('answers', () => {
  test('a question is answered once; the same answer and key return the same result, another is too late', async () => {
    const runId = await waiting();
    const question = await served.client.interaction(runId);
    expect(question).toMatchObject({
      state: 'pending',
      question: { kind: 'choose_one', prompt: 'Which database?' },
      overdue: false,
      answer: null,
    });
    const reply = { interaction_id: question.interaction_id, response: 'SQLite', idempotency_key: 'k1' };
    expect(await served.client.reply(runId, reply)).toMatchObject({ attempt_number: 2 });
    expect(await served.client.reply(runId, reply)).toMatchObject({ run_id: runId });
    expect((await refusal(served.client.reply(runId, { ...reply, response: 'Postgres' }))).code).toBe('REPLY_CONFLICT');
    await waitUntilIdle(runId);
    expect(
      (await refusal(served.client.reply(runId, { interaction_id: question.interaction_id, response: 'x' }))).status,
    ).toBe(409);
    expect(
      (await refusal(served.client.reply(runId, { interaction_id: 'int_00000000000000000000000000', response: 'x' })))
        .code,
    ).toBe('INTERACTION_NOT_FOUND');
  });

  test('the inbox lists waiting questions, oldest first, with filters, page by page', async () => {
    const ids = [
      await waiting(ASK, { labels: { box: '1' } }),
      await waiting(ASK, { labels: { box: '1' }, runtime_options: { session_timeout_sec: 0.001 } }),
    ];
    const page = await served.client.inbox({ label: 'box=1', limit: 1 });
    expect(page.interactions).toMatchObject([
      { run_id: ids[0], engine: 'codex', prompt: ASK, labels: { box: '1' }, overdue: false },
    ]);
    expect(
      (await served.client.inbox({ label: 'box=1', cursor: page.next_cursor ?? '' })).interactions.map(
        (item) => item.run_id,
      ),
    ).toEqual([ids[1]]);
    expect(
      (await served.client.inbox({ label: 'box=1', overdue: true })).interactions.map((item) => [
        item.run_id,
        item.overdue,
      ]),
    ).toEqual([[ids[1], true]]);
    expect((await served.client.inbox({ engine: 'gemini', label: 'box=1' })).interactions).toEqual([]);
    expect(await refusal(served.client.inbox({ cursor: 'int_none' }))).toEqual({
      code: 'INVALID_ARGUMENT',
      status: 400,
    });
    for (const id of ids) await served.client.cancel(id);
  });

  test('the inbox stream sends waiting questions, then each new question and answer', async () => {
    const before = await waiting();
    const leave = new AbortController();
    const changes = served.client.inboxChanges({ signal: leave.signal });
    const next = async () => (await changes.next()).value;
    expect(await next()).toEqual({ type: 'reset' });
    const known: string[] = [];
    for (let change = await next(); change?.type !== 'ready'; change = await next())
      if (change?.type === 'pending') known.push(change.item.run_id);
    expect(known).toContain(before);
    const after = await waiting();
    expect(await next()).toMatchObject({ type: 'pending', item: { run_id: after, state: 'pending' } });
    await served.client.cancel(before);
    expect(await next()).toMatchObject({ type: 'resolved', item: { run_id: before, state: 'canceled' } });
    leave.abort();
    expect((await changes.next()).done).toBe(true);
    await served.client.cancel(after);
  });
});

describe('the stream of changes of runs', () => {
  test('sends each run that is created, changes its state or asks, in order', async () => {
    const leave = new AbortController();
    const changes = served.client.runChanges({ signal: leave.signal });
    const next = async () => (await changes.next()).value;
    expect([await next(), await next()]).toEqual([{ type: 'reset' }, { type: 'ready' }]);
    const id = await waiting(ASK, { labels: { team: 'b' } });
    const seen: string[] = [];
    let change = await next();
    for (; !(change?.type === 'run' && change.run.status === 'waiting_user'); change = await next())
      seen.push(change?.type === 'run' ? `${change.run.run_id} ${change.run.status}` : '');
    expect(change.run).toEqual({ ...(await served.client.get(id)), truncated: [] });
    expect(change.run).toMatchObject({
      run_id: id,
      labels: { team: 'b' },
      interaction: { question: { prompt: 'Which database?' } },
    });
    // A state that has already ended before its notification is not reported.
    for (const text of seen) expect(text).toMatch(new RegExp(`^${id} (?:queued|running)$`));
    await served.client.cancel(id);
    for (; !(change?.type === 'run' && change.run.status === 'canceled'); change = await next())
      expect(change?.type).toBe('run');
    expect(change.run.interaction).toBeNull();
    await served.client.delete(id);
    expect(await next()).toEqual({ type: 'gone', run_id: id });
    leave.abort();
    expect((await changes.next()).done).toBe(true);
  });

  test('is for everybody who may look, and ends with the token', async () => {
    expect(await refusal(createClient({ url: served.url, token: 'not one' }).runChanges().next())).toEqual({
      code: 'UNAUTHORIZED',
      status: 401,
    });
    const token = addToken(served.bench.data.path, 'only looks', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' });
    const changes = createClient({ url: served.url, token }).runChanges();
    expect((await changes.next()).value).toEqual({ type: 'reset' });
    expect((await changes.next()).value).toEqual({ type: 'ready' });
    removeToken(served.bench.data.path, 'only looks');
    const next = refusal(changes.next());
    await ended('[[answer A secret.]]');
    expect(await next).toEqual({ code: 'UNAUTHORIZED', status: 401 });
  });
});

describe('events', () => {
  test('a stream replays from any cursor and ends with the run; a browser reconnecting later must stop', async () => {
    const runId = await ended();
    const stored = await served.bench.data.store.readJournal(runId, 'fcmp', { limit: 1000 });
    for (let cursor = 0; cursor <= stored.length; cursor += 1) {
      const text = await (await served.fetch(`/v1/runs/${runId}/events?cursor=${cursor}`)).text();
      const frames = stored.slice(cursor).map((line, index) => `id: ${cursor + index + 1}\ndata: ${line}\n\n`);
      expect(text).toBe(
        `retry: 1000\n\n${frames.join('')}event: end\ndata: ` +
          `${JSON.stringify({ run_id: runId, status: 'succeeded', seq: stored.length })}\n\n`,
      );
    }
    const again = (id: number) =>
      served.fetch(`/v1/runs/${runId}/events?cursor=0`, { headers: { 'last-event-id': String(id) } });
    expect((await again(stored.length)).status).toBe(204);
    expect(await (await again(stored.length - 1)).text()).toContain(`id: ${stored.length}\n`);
    const beyond = await served.fetch(`/v1/runs/${runId}/events?cursor=${stored.length + 1}`);
    expect([beyond.status, await beyond.json()]).toMatchObject([409, { error: { code: 'CURSOR_BEYOND_END' } }]);
    for (const cursor of ['-1', 'x', '1.5', '1e99'])
      expect((await served.fetch(`/v1/runs/${runId}/events?cursor=${cursor}`)).status, cursor).toBe(400);
    expect((await served.fetch(`/v1/runs/${runId}/events`, { headers: { 'last-event-id': 'nonsense' } })).status).toBe(
      400,
    );
  });

  test('a stream continues live from the stored events, through a question to the end', async () => {
    const runId = await waiting();
    const seen: number[] = [];
    const reading = (async () => {
      for await (const event of served.client.rasp(runId)) seen.push(event.seq);
    })();
    const { interaction_id: id } = await served.client.interaction(runId);
    await served.client.reply(runId, { interaction_id: id, response: '[[done {}]]' });
    await reading;
    const { heads, status } = await waitUntilIdle(runId);
    expect([status, seen]).toEqual(['succeeded', Array.from({ length: heads.rasp_seq }, (_, index) => index + 1)]);
  });

  test('history is read by seq and by time, both ends included, and returns the next cursor', async () => {
    const runId = await ended();
    const read = async (query: string) =>
      (await (await served.fetch(`/v1/runs/${runId}/rasp/history${query}`)).json()) as {
        events: { seq: number; ts: string }[];
        next_seq: number | null;
      };
    const { events: all } = await read('');
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
    expect(await read('?from_seq=2&limit=2')).toEqual({ events: all.slice(1, 3), next_seq: 4 });
    expect(await read('?from_seq=2&to_seq=3')).toEqual({ events: all.slice(1, 3), next_seq: null });
    const [first, last] = [all[2]?.ts ?? '', all[4]?.ts ?? ''];
    expect((await read(`?from_ts=${first}&to_ts=${last}`)).events).toEqual(
      all.filter(({ ts }) => ts >= first && ts <= last),
    );
    expect((await served.fetch(`/v1/runs/${runId}/events/history?from_ts=yesterday`)).status).toBe(400);
    expect((await served.fetch(`/v1/runs/${runId}/events/history`)).headers.get('content-type')).toContain(
      'application/json',
    );
  });
});

describe('evidence', () => {
  test('the bytes of an event are read by its raw_ref, and the log whole', async () => {
    const runId = await ended('[[answer Hello, 漢字.]]');
    const log = readFileSync(runFolder(served.bench.data.path, runId).attempt(1).logs.stdout);
    const whole = await served.fetch(`/v1/runs/${runId}/logs`);
    expect(Buffer.from(await whole.arrayBuffer())).toEqual(log);
    expect(whole.headers.get('x-content-type-options')).toBe('nosniff');
    const { events } = (await (await served.fetch(`/v1/runs/${runId}/rasp/history`)).json()) as { events: RaspEvent[] };
    const refs = events.map(({ raw_ref: ref }) => ref).filter((ref) => ref !== null && ref.stream === 'stdout');
    expect(refs.length).toBeGreaterThan(0);
    for (const ref of refs) {
      const range = `byte_from=${ref?.byte_from}&byte_to=${ref?.byte_to}`;
      const part = await served.fetch(`/v1/runs/${runId}/logs?attempt=${ref?.attempt_number}&stream=stdout&${range}`);
      expect(Buffer.from(await part.arrayBuffer())).toEqual(log.subarray(ref?.byte_from, ref?.byte_to));
    }
    expect(
      (await (await served.fetch(`/v1/runs/${runId}/logs?byte_from=${log.length}`)).arrayBuffer()).byteLength,
    ).toBe(0);
    for (const query of [`byte_from=${log.length + 1}`, 'attempt=2', 'attempt=0', 'stream=none', 'byte_from=-1'])
      expect((await served.fetch(`/v1/runs/${runId}/logs?${query}`)).status, query).toBe(400);
  });

  test('files of the run are listed and read, never its home and never what lies outside', async () => {
    const runId = await ended();
    const { path, home } = runFolder(served.bench.data.path, runId);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'auth.json'), 'secret');
    mkdirSync(join(path, 'workspace'), { recursive: true });
    writeFileSync(join(path, 'workspace', 'made.txt'), 'made');
    symlinkSync('/etc/passwd', join(path, 'workspace', 'link'));
    symlinkSync(home, join(path, 'workspace', 'to-home'));
    const { files } = (await (await served.fetch(`/v1/runs/${runId}/files`)).json()) as { files: { path: string }[] };
    const paths = files.map((file) => file.path);
    expect(paths).toEqual(expect.arrayContaining(['attempts/1/stdout.log', 'rasp.jsonl', 'workspace/made.txt']));
    expect(paths.filter((each) => /home|link/.test(each))).toEqual([]);
    const read = (file: string) => served.fetch(`/v1/runs/${runId}/files/content?path=${encodeURIComponent(file)}`);
    expect(await (await read('workspace/made.txt')).text()).toBe('made');
    for (const file of [
      'home/auth.json',
      './home/auth.json',
      'workspace/../home/auth.json',
      'workspace/to-home/auth.json',
      'workspace/link',
      '/etc/passwd',
      '../../token',
      '../../../../../../etc/passwd',
    ])
      expect((await read(file)).status, file).toBe(404);
    for (const file of ['none', 'workspace', 'workspace/made.txt\0']) expect((await read(file)).status, file).toBe(404);
  });

  test('the folder of a run is downloaded as a tar, without its home and link targets', async () => {
    const runId = await ended();
    const { path, workspace, home } = runFolder(served.bench.data.path, runId);
    const long = join(workspace, 'a'.repeat(120), 'b'.repeat(120), `${'ü'.repeat(60)}.txt`);
    mkdirSync(join(long, '..'), { recursive: true });
    mkdirSync(home, { recursive: true });
    writeFileSync(long, 'far');
    writeFileSync(join(workspace, 'large.bin'), Buffer.alloc(1_000_001, 7));
    writeFileSync(join(workspace, 'empty'), '');
    writeFileSync(join(home, 'auth.json'), 'secret');
    symlinkSync(home, join(workspace, 'to-home'));
    symlinkSync('/etc/passwd', join(workspace, 'link'));
    const answer = await served.fetch(`/v1/runs/${runId}/archive`);
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([
      200,
      'application/x-tar',
      `attachment; filename="${runId}.tar"`,
    ]);
    const out = join(served.root, 'unpacked');
    mkdirSync(out);
    execFileSync('tar', ['-x', '-C', out], { input: Buffer.from(await answer.arrayBuffer()) });
    expect(names(join(out, runId))).toEqual(names(path).filter((name) => !name.startsWith('home/')));
    expect(names(join(out, runId))).toEqual(
      expect.arrayContaining(['attempts/1/stdout.log', 'workspace/large.bin', 'workspace/empty', relative(path, long)]),
    );
    for (const name of names(join(out, runId)))
      expect(readFileSync(join(out, runId, name)).equals(readFileSync(join(path, name))), name).toBe(true);
    expect((await served.fetch('/v1/runs/run_01M7HEENCB3Q72PDFDW48J2F4K/archive')).status).toBe(404);
  });

  test('result and checks of a run', async () => {
    const runId = await ended('[[done {"n":7}]]');
    expect(await (await served.fetch(`/v1/runs/${runId}/result`)).json()).toEqual({
      run_id: runId,
      status: 'succeeded',
      result: { n: 7 },
      error: null,
    });
    expect(await (await served.fetch(`/v1/runs/${runId}/verify`)).json()).toMatchObject({ run_id: runId, ok: true });
  });
});

describe('the server about itself', () => {
  test('health needs no token; who one is, engines, contract, parsers and figures do', async () => {
    // It shares no database: there is no host to prove its identity to.
    const challenge = (text: string) => served.fetch(`/readyz?challenge=${text}`, { as: null });
    expect(await (await challenge('x'.repeat(16))).json()).toEqual({ status: 'ok' });
    for (const wrong of ['', 'x'.repeat(15), 'x'.repeat(129), 'x%20'.repeat(16)])
      expect((await challenge(wrong)).status).toBe(400);
    for (const path of ['/healthz', '/readyz'])
      expect(await (await served.fetch(path, { as: null })).json()).toEqual({ status: 'ok' });
    expect(await (await served.fetch('/v1/me')).json()).toEqual({ name: 'ann', role: 'operator' });
    expect(await (await served.fetch('/v1/engines')).json()).toMatchObject({
      engines: [{ name: 'codex', found: true }],
      defaults: { execution_mode: null, permission: 'workspace-write', model: { codex: 'served-model' } },
    });
    expect(await (await served.fetch('/v1/contract')).json()).toMatchObject({
      initial: 'queued',
      edges: expect.arrayContaining([expect.objectContaining({ id: 'T13' })]),
    });
    await ended();
    expect(await (await served.fetch('/v1/metrics/parsers')).json()).toMatchObject({
      profiles: expect.arrayContaining([expect.objectContaining({ engine: 'codex', hit_rate: 1 })]),
    });
    const runId = await waiting();
    const text = await (await served.fetch('/metrics')).text();
    for (const line of [
      /^parley_runs\{state="waiting_user"\} [1-9]/m,
      /^parley_turns_total\{engine="codex",profile="codex_ndjson"\} [1-9]/m,
      /^parley_pending_interactions\{overdue="false"\} [1-9]/m,
      /^parley_store_commit_seconds_count [1-9]/m,
      /^parley_streams \d/m,
      /^parley_blocked_on_person_seconds_count\{resolution="canceled"\} [1-9]/m,
    ])
      expect(text).toMatch(line);
    await served.client.cancel(runId);
  });

  test('the page and the document describe every route', async () => {
    const document = (await (await served.fetch('/openapi.json')).json()) as {
      openapi: string;
      paths: Record<string, object>;
    };
    expect(document.openapi).toBe('3.1.0');
    expect(
      Object.entries(document.paths)
        .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
        .toSorted(),
    ).toEqual(ROUTES.toSorted());
    const page = await served.fetch('/docs');
    const html = await page.text();
    for (const path of Object.keys(document.paths)) expect(html).toContain(path);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('the link signs a browser in, the cookie is for it alone, and a wrong link does nothing', async () => {
    const signIn = (body: object, headers: Record<string, string> = { origin: served.url }) =>
      served.fetch('/v1/sign-in', { method: 'POST', as: null, headers, body: JSON.stringify(body) });
    const { code } = await served.client.createSignInCode();
    const answer = await signIn({ code });
    expect(answer.status).toBe(200);
    const cookie = answer.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^parley_[0-9a-f]{12}=.*; Path=\/; HttpOnly; SameSite=Lax/);
    const [pair = ''] = cookie.split(';');
    expect(cookie).not.toContain(served.token);
    expect((await served.fetch('/v1/me', { as: pair.split('=')[1] ?? '' })).status).toBe(401);
    const asBrowser = (path: string, init: RequestInit = {}) =>
      served.fetch(path, { ...init, as: null, headers: { cookie: pair, ...(init.headers as Record<string, string>) } });
    expect((await asBrowser('/v1/me')).status).toBe(200);
    expect((await asBrowser('/v1/sign-out', { method: 'POST' })).status).toBe(403);
    expect((await asBrowser('/v1/sign-out', { method: 'POST', headers: { origin: served.url } })).status).toBe(204);
    expect((await asBrowser('/v1/me')).status).toBe(401);
    for (const wrong of [{ code }, { code: 'wrong' }, { token: 'wrong' }])
      expect((await signIn(wrong)).status).toBe(401);
    for (const secret of [served.token, code, pair.split('=')[1] ?? ''])
      expect(served.logged.join('')).not.toContain(secret);
  });
});

test('requests match the contract of the command line and the checks of the orchestrator', () => {
  const contract = JSON.parse(readFileSync(new URL('../../../contract/cli.schema.json', import.meta.url), 'utf8')) as {
    $defs: Record<string, { required: string[]; properties: object }>;
  };
  for (const [name, { shape }] of [
    ['run', runView],
    ['interaction', interactionView],
  ] as const) {
    const { required = [], properties = {} } = contract.$defs[name] ?? {};
    // Only in lists, and only if sessions.sticky is on.
    const elsewhere = new Set(['truncated', 'interactive_profile', 'wait_deadline_at']);
    expect(Object.keys(shape).toSorted()).toEqual(
      Object.keys(properties)
        .filter((member) => !elsewhere.has(member))
        .toSorted(),
    );
    expect(
      Object.entries(shape)
        .filter(([, member]) => member.type !== 'optional')
        .map(([member]) => member)
        .toSorted(),
    ).toEqual(required.toSorted());
  }
  expect(Object.keys(createRunBody.shape).toSorted()).toEqual([
    'cwd',
    'engine',
    'execution_mode',
    'force',
    'labels',
    'model',
    'output_schema',
    'permission',
    'prompt',
    'request_id',
    'runtime_options',
  ]);
});

test('an answer that is complete only when the server is stopping is refused, and its run keeps waiting', async () => {
  const stopping = await serve();
  const { run_id: runId } = await stopping.client.create({
    engine: 'codex',
    prompt: ASK,
    execution_mode: 'interactive',
    permission: 'full',
  });
  await stopping.bench.orchestrator.waitUntilIdle(runId);
  const { interaction_id: id } = await stopping.client.interaction(runId);
  const body = JSON.stringify({ interaction_id: id, response: 'a' });
  const sending = new Gate();
  const requestSeen = once(stopping.service.app.server, 'request');
  const answer = stopping.fetch(`/v1/runs/${runId}/interaction/reply`, {
    method: 'POST',
    duplex: 'half',
    headers: { 'content-type': 'application/json' },
    body: new ReadableStream({
      start: async (controller) => {
        controller.enqueue(new TextEncoder().encode(body.slice(0, 5)));
        await sending.opened;
        controller.enqueue(new TextEncoder().encode(body.slice(5)));
        controller.close();
      },
    }),
  } as RequestInit);
  await requestSeen;
  // Waits until the first check has run.
  await settle();
  stopping.service.stopTaking();
  sending.open();
  const refused = await answer;
  expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'SHUTTING_DOWN' } }]);
  expect((await stopping.bench.data.store.loadRun(runId))?.status).toBe('waiting_user');
  await stopping.close();
});
