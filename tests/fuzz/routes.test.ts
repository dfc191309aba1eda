// Every route of the OpenAPI document, with valid, extreme and invalid values, for every kind of caller. Each response
// is documented, callers without permission are refused and change nothing, and the server keeps working.
import { mkdirSync, readFileSync } from 'node:fs';
import { Agent, request as send } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { damage } from '../support/damaged-streams.js';
import { fuzz, PATIENCE_MS, pick, SEED, type Random } from '../support/fuzz.js';
import { anyJson, mutateJson, toJsonText } from '../support/json-mutations.js';
import {
  answerOf,
  badValue,
  explainBy,
  goodValue,
  operationsOf,
  type ApiDocument,
  type Operation,
  type Parameter,
} from '../support/openapi.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { seededRandom } from '../support/seeded-random.js';
import { serve, type Served } from '../support/served.js';

interface Answer {
  readonly status: number;
  readonly type: string;
  // Null: a stream that the test closed.
  readonly body: Buffer | null;
}

interface Ask {
  readonly operation: Operation;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Buffer | null;
  // No problem.
  readonly good: boolean;
  readonly role: Role;
}

interface Runs {
  readonly ended: string;
  readonly waiting: string;
  readonly interaction: string;
}

const ROLES = ['anonymous', 'wrong', 'viewer', 'replier', 'operator'] as const;
type Role = (typeof ROLES)[number];

const ERRORS = JSON.parse(readFileSync(new URL('../../contract/errors.json', import.meta.url), 'utf8')) as Record<
  string,
  { http_status: number | null }
>;
const HERE = new URL('../..', import.meta.url).pathname;
// For people and programs that read the document itself; the console is not built here.
const HIDDEN = ['GET /', 'GET /docs', 'GET /openapi.json'];

let served: Served;
let document: ApiDocument;
let operations: readonly Operation[];
// Read by all cases and changed by none, so the result of a case does not depend on earlier ones.
let ids: Runs;
let tokens: Record<Role, string | null>;
let quick = false;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });

beforeAll(async () => {
  // An engine that does nothing is enough for the runs here.
  served = await serve({
    bench: {
      runtime: {
        findProgram: async (engine) =>
          quick ? ['/bin/true'] : [new URL(`../stand-ins/bin/${engine.name}`, import.meta.url).pathname],
      },
    },
  });
  mkdirSync(join(served.root, 'allowed', 'project'), { recursive: true });
  document = (await (await served.fetch('/openapi.json')).json()) as ApiDocument;
  operations = operationsOf(document);
  const [ended, waiting] = await Promise.all([startRun('done'), startRun('[[ask Which?|a|b]]')]);
  ids = { ended, waiting, interaction: (await served.client.interaction(waiting)).interaction_id };
  tokens = {
    anonymous: null,
    wrong: 'pt_nobody',
    viewer: served.tokenOf('viewer'),
    replier: served.tokenOf('replier'),
    operator: served.token,
  };
  quick = true;
});
afterAll(async () => {
  agent.destroy();
  await served.close();
});

async function startRun(prompt: string): Promise<string> {
  const { run_id: id } = await served.client.create({
    engine: 'codex',
    prompt,
    execution_mode: prompt === 'done' ? 'auto' : 'interactive',
  });
  await served.bench.orchestrator.waitUntilIdle(id);
  return id;
}

// These change a run that was created for the case, of this kind.
const CHANGING: Readonly<Record<string, 'ended' | 'waiting'>> = {
  deleteRun: 'ended',
  cancelRun: 'waiting',
  reply: 'waiting',
};
const NO_RUN = 'run_00000000000000000000000000';

async function makeOwn(sort: 'ended' | 'waiting'): Promise<Runs> {
  // Those of earlier cases were started before.
  await waitUntilIdle();
  quick = sort === 'ended';
  try {
    const id = await startRun(sort === 'ended' ? 'done' : '[[ask Which?|a|b]]');
    return {
      ended: id,
      waiting: id,
      interaction: sort === 'ended' ? ids.interaction : (await served.client.interaction(id)).interaction_id,
    };
  } finally {
    quick = true;
  }
}

test('no route is left out: the document has every one of the router, but for the pages', () => {
  const problems: string[] = [];
  const above: string[] = [];
  for (const line of served.service.app.printRoutes({ commonPrefix: false }).trimEnd().split('\n')) {
    const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+)(?: \((.*)\))?$/.exec(line) ?? [];
    above.splice(indent.length / 4, above.length, part);
    for (const method of methods.split(', ').filter((name) => name !== '' && name !== 'HEAD'))
      problems.push(`${method} ${above.join('').replaceAll(/:(\w+)/g, '{$1}')}`);
  }
  expect(problems.toSorted()).toEqual(
    [...operations.map(({ method, path }) => `${method} ${path}`), ...HIDDEN].toSorted(),
  );
});

function exchange(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Buffer | null,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(served.url);
    const asked = send(
      {
        agent,
        host: hostname,
        port,
        method,
        path,
        headers: { ...headers, ...(body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }) },
      },
      (response) => {
        const type = response.headers['content-type'] ?? '';
        const { statusCode: status = 0 } = response;
        if (type.startsWith('text/event-stream')) {
          resolve({ status, type, body: null });
          return void response.destroy();
        }
        const chunks: Buffer[] = [];
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('error', reject)
          .on('end', () => resolve({ status, type, body: Buffer.concat(chunks) }));
      },
    );
    asked.on('error', reject).end(body ?? undefined);
  });
}

const GOOD: Readonly<Record<string, (random: Random, runs: Runs) => string>> = {
  id: (random, { ended, waiting }) => pick(random, [ended, waiting]),
  path: () => 'result.json',
  label: () => 'team=a',
  engine: () => 'codex',
  cursor: () => ids.ended,
  challenge: () => 'a'.repeat(32),
  from_ts: () => '2026-01-01T00:00:00.000Z',
  to_ts: () => '2036-01-01T00:00:00.000Z',
  byte_from: () => '0',
  attempt: () => '1',
};

function parameterOf(
  path: string,
  { name, in: place, schema }: Parameter,
  good: boolean,
  random: Random,
  runs: Runs,
): string {
  if (!good)
    return place === 'path' ? badValue(schema, random).replaceAll(/[/?#;*]/g, '') || '%00' : badValue(schema, random);
  // An existing id: of an interaction here, of a run there, of a journal elsewhere.
  if (name === 'cursor' && schema.type === 'integer') return '0';
  if (name === 'cursor' && path === '/v1/interactions') return ids.interaction;
  // Well formed; no such session exists.
  if (path.startsWith('/v1/sessions') && ['id', 'cursor'].includes(name)) return `ses_${'0'.repeat(26)}`;
  return GOOD[name]?.(random, runs) ?? goodValue(schema, random) ?? 'x';
}

function goodBody(operationId: string, random: Random, index: number, { interaction }: Runs): Record<string, unknown> {
  if (operationId === 'createRun')
    return {
      engine: pick(random, ['codex', 'gemini', 'opencode', 'iflow', 'rehearsal']),
      prompt: pick(random, ['x', 'é 漢字 \u2028', '-', '0']),
      execution_mode: pick(random, ['auto', 'interactive']),
      permission: 'workspace-write',
      labels: { team: 'a', 'x=y': '' },
      request_id: `fuzz-${index}`,
      output_schema: pick(random, [true, { type: 'object' }]),
      runtime_options: { max_attempt: 3, session_timeout_sec: 60 },
      cwd: join(served.root, 'allowed', 'project'),
    };
  if (operationId === 'reply')
    return {
      interaction_id: interaction,
      response: pick(random, ['a', 'b', 'something else']),
      idempotency_key: `k-${index}`,
    };
  if (operationId === 'signIn') return { token: served.token };
  if (operationId === 'createSignInCode') return { expires_in_sec: 60 + random(100) };
  if (operationId === 'retryRun') return { request_id: `fuzz-${index}` };
  return { prompt: 'go on', request_id: `fuzz-${index}` };
}

async function compose(
  operation: Operation,
  random: Random,
  index: number,
  role: Role,
  good: boolean,
): Promise<Ask & { readonly fits: boolean }> {
  const sort = may({ operation, role }) === 200 ? CHANGING[operation.operationId] : undefined;
  // Enough that a third of the changing requests find a run that can be changed.
  const fits = sort !== undefined && (good || random(6) === 0);
  const runs = fits ? await makeOwn(sort) : sort ? { ...ids, ended: NO_RUN, waiting: NO_RUN } : ids;
  const [places, all] = [{ path: operation.path, query: [] as string[] }, operation.parameters ?? []];
  const wrong = good ? -1 : random(all.length + 3);
  for (const [place, parameter] of all.entries()) {
    if (parameter.in === 'query' && random(2) === 0 && place !== wrong && parameter.name !== 'path') continue;
    const text = parameterOf(operation.path, parameter, place !== wrong, random, runs);
    if (parameter.in === 'path') places.path = places.path.replace(`{${parameter.name}}`, text);
    else
      places.query.push(
        `${parameter.name}=${text}`,
        ...(place === wrong && random(4) === 0 ? [`${parameter.name}=${text}`] : []),
      );
  }
  if (!good && random(5) === 0)
    places.query.push(`${pick(random, ['extra', '__proto__', 'constructor', 'limit[]', '%00'])}=1`);
  const headers: Record<string, string> = tokens[role] === null ? {} : { authorization: `Bearer ${tokens[role]}` };
  if (!good && random(4) === 0)
    headers[
      pick(random, [
        'idempotency-key',
        'last-event-id',
        'accept',
        'content-encoding',
        'x-forwarded-for',
        'if-none-match',
        'range',
        'expect',
      ])
    ] = pick(random, ['', 'x', '-1', '1'.repeat(500), 'gzip', 'text/html', 'bytes=0-5', '*/*']);
  if (operation.operationId === 'signIn') headers['origin'] = served.url;
  let body: string | Buffer | null = null;
  if (operation.requestBody && operation.operationId) {
    const whole = goodBody(operation.operationId, random, index, runs);
    body = good || wrong < all.length ? JSON.stringify(whole) : badBody(whole, random);
    headers['content-type'] =
      good || random(6) > 0
        ? 'application/json'
        : pick(random, [
            'text/plain',
            'application/x-www-form-urlencoded',
            'application/json; charset=utf-16',
            'multipart/form-data',
            'nonsense',
            'application/xml',
          ]);
  } else if (!good && random(6) === 0) {
    body = pick(random, ['{}', 'x', '']);
    headers['content-type'] = 'application/json';
  }
  return {
    operation,
    path: `${places.path}${places.query.length > 0 ? `?${places.query.join('&')}` : ''}`,
    headers,
    body,
    good,
    role,
    fits: fits && good,
  };
}

function badBody(whole: Record<string, unknown>, random: Random): string | Buffer {
  switch (random(8)) {
    case 0:
      return toJsonText(anyJson(random));
    case 1:
      return damage(Buffer.from(JSON.stringify(whole)), random, [Buffer.from('{}')], 2);
    case 2:
      return `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`;
    case 3:
      return JSON.stringify({ ...whole, more: 1 });
    case 4:
      return JSON.stringify(whole).replace('{', '{"prompt":5,"request_id":[],');
    default:
      return toJsonText(mutateJson(whole, random));
  }
}

const may = ({ operation: { description }, role }: Pick<Ask, 'operation' | 'role'>): number => {
  const needed = /role (\w+)/.exec(description)?.[1] ?? 'anonymous';
  if (needed === 'anonymous') return 200;
  if (ROLES.indexOf(role) < ROLES.indexOf('viewer')) return 401;
  return ROLES.indexOf(role) < ROLES.indexOf(needed as Role) ? 403 : 200;
};

// Refusals before authentication.
const EARLY = new Set([400, 404, 414, 415, 417, 431]);

// A person who opens an address in a browser gets a page.
const isPage = (ask: Ask, status: number): boolean =>
  status >= 400 && ask.operation.method === 'GET' && ask.headers['accept'] === 'text/html';

function expectDocumented(ask: Ask, { status, type, body }: Answer): void {
  const { operation } = ask;
  const text = body?.toString('utf8') ?? '';
  expect(status < 500 || status === 503, text).toBe(true);
  const answerSchema = answerOf(operation, status);
  expect(answerSchema, `${status} is not documented: ${text.slice(0, 300)}`).not.toBeNull();
  // The journal of a run names the programs of its engine.
  for (const secret of [
    ...(status >= 400 ? [HERE, 'node_modules', '\n    at '] : []),
    ...Object.values(tokens).filter((token) => token !== null && token !== 'pt_nobody'),
  ])
    expect(text.includes(secret as string), `tells ${secret}`).toBe(false);
  const contents = answerSchema?.content ?? {};
  if (Object.keys(contents).length === 0) return expect(text).toBe('');
  if (isPage(ask, status)) return;
  // Most responses have one type; the check of a run has a second one, if its progress was requested.
  const mime = type.split(';')[0] ?? '';
  expect(Object.keys(contents)).toContain(mime);
  const { schema } = contents[mime] ?? {};
  if (mime === 'application/x-ndjson')
    for (const line of text.trimEnd().split('\n'))
      expect(explainBy(document, schema ?? {}, JSON.parse(line)), line).toBeNull();
  if (mime !== 'application/json') return;
  const value = JSON.parse(text) as { error?: { code: string; message: string } };
  expect(explainBy(document, schema ?? {}, value), text.slice(0, 500)).toBeNull();
  if (status < 400) return;
  expect(ERRORS[value.error?.code ?? '']?.http_status, text).toBe(status);
  // Values that the client sent are quoted; the sentences around them are ours.
  expect(value.error?.message.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(LIBRARY_WORDS);
}

function expectAgreed(ask: Ask, { status, body }: Answer): void {
  const allowed = may(ask);
  if (allowed !== 200) return expect(EARLY.has(status) && !ask.good ? allowed : status).toBe(allowed);
  if (isPage(ask, status)) return;
  const schema = ask.operation.requestBody?.content?.['application/json']?.schema;
  const { error } =
    status >= 400
      ? (JSON.parse(body?.toString('utf8') ?? '{}') as {
          error: { code: string; message: string; details?: { where?: string; problems?: { path: string }[] } };
        })
      : { error: null };
  if (ask.good)
    expect(
      [400, 404, 405, 415].includes(status) &&
        !['RUN_NOT_INTERACTIVE', 'INTERACTION_NOT_FOUND', 'NOT_FOUND'].includes(error?.code ?? ''),
      JSON.stringify(error),
    ).toBe(false);
  if (!schema || typeof ask.body !== 'string') return;
  let value: unknown;
  try {
    value = JSON.parse(ask.body);
  } catch {
    return expect(status).toBeGreaterThanOrEqual(400);
  }
  const problem = explainBy(document, schema, value);
  if (problem !== null) expect(status, problem).toBeGreaterThanOrEqual(400);
  else if (error?.details?.where === 'body') expect(error.message, 'the document allows this body').toBe('');
}

const fingerprint = async (): Promise<string> =>
  JSON.stringify(
    (await served.bench.data.store.listRuns({ limit: 500 })).map(({ run_id, status, epoch, heads }) => [
      run_id,
      status,
      epoch,
      heads.digest,
    ]),
  );
const waitUntilIdle = async (): Promise<void> => {
  for (const status of ['queued', 'running'] as const)
    for (const { run_id: id } of await served.bench.data.store.listRuns({ status, limit: 500 }))
      await served.bench.orchestrator.waitUntilIdle(id);
};

test(
  'whatever is asked, by whomever, is answered as the document says',
  async () => {
    await fuzz('routes', 1000, async (random, index) => {
      const operation = operations[index % operations.length] as Operation;
      const role = random(2) === 0 ? 'operator' : pick(random, ROLES);
      const ask = await compose(operation, random, index, role, random(3) === 0);
      const harmless = may(ask) !== 200 && operation.method !== 'GET';
      if (harmless) await waitUntilIdle();
      const before = harmless ? await fingerprint() : null;
      let answer: Answer;
      try {
        answer = await exchange(operation.method, ask.path, ask.headers, ask.body);
      } catch (error) {
        // Node itself does not send this.
        if ((error as NodeJS.ErrnoException).code?.startsWith('ERR_')) return;
        throw error;
      }
      try {
        expectDocumented(ask, answer);
        expectAgreed(ask, answer);
        if (before !== null) expect(await fingerprint()).toBe(before);
        if (ask.fits) expect(answer.status).toBeLessThan(300);
      } catch (error) {
        if (error instanceof Error)
          error.message =
            `${operation.method} ${ask.path.slice(0, 300)} as ${ask.role} ` +
            `${JSON.stringify(ask.headers).slice(0, 300)} ${String(ask.body).slice(0, 600)} → ` +
            `${answer.status}: ${error.message}`;
        throw error;
      }
    });
    await expectWell();
  },
  PATIENCE_MS,
);

// Independent of the seed of the cases above.
test.each([
  ['deleteRun', 'operator'],
  ['cancelRun', 'operator'],
  ['reply', 'operator'],
  ['reply', 'replier'],
] as const)('a valid %s by one who may (%s) is done', async (name, role) => {
  const operation = operations.find(({ operationId }) => operationId === name) as Operation;
  const ask = await compose(operation, seededRandom(SEED), -1, role, true);
  expect([may(ask), ask.fits]).toEqual([200, true]);
  const answer = await exchange(operation.method, ask.path, ask.headers, ask.body);
  expectDocumented(ask, answer);
  expect(answer.status, answer.body?.toString('utf8')).toBeLessThan(300);
  await expectWell();
});

test('a method that a path has not is refused, on every path and for everybody', async () => {
  for (const { path } of operations) {
    const known = new Set(
      operations
        .filter((each) => each.path === path)
        .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
    );
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'].filter(
      (name) => !known.has(name),
    )) {
      for (const role of ['anonymous', 'operator'] as const) {
        const { status, body } = await exchange(
          method,
          path.replace('{id}', ids.ended),
          tokens[role] === null ? {} : { authorization: `Bearer ${tokens[role]}` },
          null,
        );
        expect([401, 404, 405], `${method} ${path}: ${body?.toString('utf8')}`).toContain(status);
      }
    }
  }
  await expectWell();
});

async function expectWell(): Promise<void> {
  await waitUntilIdle();
  expect((await served.fetch('/readyz')).status).toBe(200);
  expect((await served.client.list()).runs.length).toBeGreaterThan(0);
  expect((await served.client.get(ids.waiting)).status).toBe('waiting_user');
  const log = served.logged.splice(0);
  expect(log.filter((line) => /"level":[56]0|INTERNAL/.test(line))).toEqual([]);
  for (const token of [tokens.viewer, tokens.replier, tokens.operator])
    expect(log.some((line) => line.includes(token ?? ''))).toBe(false);
}
