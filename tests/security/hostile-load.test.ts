// Hundreds of hostile requests of all kinds against a real server with running turns: every turn ends correctly, no
// answer is lost, no response is an internal error, and the server stays healthy. How long its event loop was blocked
// is measured inside the server and from another process, and reported by kind of request.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as send } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { addToken } from '../../src/service/access/tokens.js';
import { createSite } from '../support/command.js';
import { open } from '../support/raw-http.js';
import { startServer, type ServerProcess } from '../support/served-process.js';

const REQUESTS = 500;
const TURNS = 8;
const STALLS = new URL('../support/report-stalls.mjs', import.meta.url).href;
const PROBE = fileURLToPath(new URL('../support/probe-health.mjs', import.meta.url));

interface Scene {
  readonly server: ServerProcess;
  readonly viewer: string;
  readonly replier: string;
  readonly ids: readonly string[];
  // Runs that were accepted on the way.
  readonly accepted: string[];
  readonly sockets: Socket[];
}

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface Answer {
  // 0: the server closed the connection.
  readonly status: number;
  readonly body: string;
}

function ask(
  { server }: Scene,
  { method = 'GET', path, token = server.token, headers = {}, body }: Asked,
): Promise<Answer> {
  return new Promise((resolve) => {
    const type =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const asked = send(
      `${server.url}${path}`,
      {
        agent: false,
        method,
        headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...type, ...headers },
      },
      (response) => {
        text(response).then(
          (answer) => resolve({ status: response.statusCode ?? 0, body: answer }),
          () => resolve({ status: response.statusCode ?? 0, body: '' }),
        );
      },
    );
    asked.once('error', () => resolve({ status: 0, body: '' }));
    asked.end(body);
  });
}

// A socket that stays open until the end; its responses are not read.
function leaveOpen(scene: Scene, bytes: string): Promise<Answer> {
  const socket = open(scene.server.url).pause();
  scene.sockets.push(socket);
  return new Promise((resolve) => socket.write(bytes, () => resolve({ status: 0, body: '' })));
}

const pick = <T>(values: readonly T[], number: number): T => values[number % values.length] as T;
const rawGet = ({ server }: Scene, path: string, token: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

async function create(scene: Scene, body: object): Promise<Answer> {
  const answer = await ask(scene, { method: 'POST', path: '/v1/runs', body: JSON.stringify(body) });
  if (answer.status === 201) scene.accepted.push((JSON.parse(answer.body) as { run_id: string }).run_id);
  return answer;
}

const BODIES = [
  '{',
  '[]',
  'null',
  '"x"',
  '{"engine":1}',
  '{"engine":"rehearsal"}',
  `{"engine":"rehearsal","prompt":"x","__proto__":{"a":1}}`,
  '[['.repeat(50_000),
  `{"a":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_001)}`,
  '\u0000',
  '{"engine":"rehearsal","prompt":"\\ud800"',
  `{"engine":"rehearsal","prompt":"x","labels":{"a":${'9'.repeat(400)}}}`,
];
const PATHS = [
  '../../../../etc/passwd',
  '..%2f..%2fparley.db',
  '/etc/passwd',
  '....//....//token',
  'attempts/../../../token',
  '%00',
  'a%00b',
  '..\\..\\token',
  '.',
  '',
  `${'a/'.repeat(2000)}b`,
  'home/.config',
];
const CURSORS = [
  '',
  ' 1',
  '0x2',
  '1e3',
  'zzz',
  '-1',
  '99999999999999999999',
  '%ff',
  '../',
  'run_00000000000000000000000000',
  "' OR 1=1 --",
];
const METHODS = ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'SEARCH', 'HEAD', 'LOCK'];
const HOSTILE_SCHEMAS = [
  { $async: true },
  { type: 'string', pattern: '^(a+)+$' },
  { allOf: Array.from({ length: 20_000 }, (_, index) => ({ not: { const: index } })) },
  { $ref: '#' },
];

// The requests by kind; `number` counts up within the kind.
const KINDS: Readonly<Record<string, (scene: Scene, number: number) => Promise<Answer>>> = {
  'bad bodies': (scene, number) =>
    ask(scene, {
      method: 'POST',
      path: pick(
        ['/v1/runs', `/v1/runs/${scene.ids[0]}/interaction/reply`, `/v1/runs/${scene.ids[0]}/continue`],
        number,
      ),
      body: pick(BODIES, number),
      headers: pick<Record<string, string>>(
        [{}, { 'content-type': 'text/plain' }, { 'content-encoding': 'gzip' }],
        Math.floor(number / 3),
      ),
    }),
  'hostile schemas': (scene, number) =>
    create(scene, {
      engine: 'rehearsal',
      prompt: '[[done "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]]',
      output_schema: pick(HOSTILE_SCHEMAS, number),
    }),
  'verify storms': (scene, number) =>
    ask(scene, { path: `/v1/runs/${pick(scene.ids, number)}/verify`, token: scene.viewer }),
  'half-open sockets': (scene, number) =>
    leaveOpen(
      scene,
      pick(
        [
          'GET / HT',
          rawGet(scene, '/v1/runs', scene.viewer).slice(0, -2),
          'POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
          '',
        ],
        number,
      ),
    ),
  'non-readers': (scene, number) =>
    leaveOpen(
      scene,
      rawGet(
        scene,
        pick(
          [
            '/v1/runs?limit=500',
            '/v1/interactions/events',
            '/v1/changes',
            `/v1/runs/${scene.ids[0]}/rasp`,
            `/v1/runs/${scene.ids[0]}/archive`,
            `/v1/runs/${scene.ids[0]}/rasp/history`,
          ],
          number,
        ),
        scene.viewer,
      ),
    ),
  'bad cursors': (scene, number) => {
    const paths = [
      '/v1/runs?cursor=',
      '/v1/interactions?cursor=',
      `/v1/runs/${scene.ids[0]}/rasp/history?from_seq=`,
      `/v1/runs/${scene.ids[0]}/logs?byte_from=`,
    ];
    const path = `${pick(paths, number)}${encodeURIComponent(pick(CURSORS, number))}`;
    return ask(scene, { path, token: scene.viewer });
  },
  'path traversal': (scene, number) =>
    ask(scene, {
      path: pick(
        [
          `/v1/runs/${scene.ids[0]}/files/content?path=${pick(PATHS, number)}`,
          `/v1/runs/${encodeURIComponent(pick(PATHS, number))}`,
          `/assets/${pick(PATHS, number)}`,
        ],
        number,
      ),
      token: scene.viewer,
    }),
  'unknown tokens': (scene, number) =>
    ask(scene, {
      path: '/v1/runs',
      token: pick([null, 'x', randomBytes(24).toString('base64url'), '%00', 'prl_'], number),
      headers: number % 3 === 0 ? { cookie: `parley_x=${'y'.repeat(2000)}` } : {},
    }),
  'method confusion': (scene, number) =>
    ask(scene, {
      method: pick(METHODS, number),
      path: pick(
        ['/v1/runs', `/v1/runs/${scene.ids[0]}/cancel`, '/healthz', '/v1/interactions/events'],
        Math.floor(number / 2),
      ),
      token: scene.viewer,
      headers: { 'x-http-method-override': 'DELETE' },
    }),
  'header floods': (scene, number) =>
    ask(scene, {
      path: '/v1/runs',
      token: scene.viewer,
      headers:
        number % 2 === 0
          ? Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-${index}`, 'y']))
          : { 'x-long': 'y'.repeat(100_000) },
    }),
  'list storms': (scene, number) =>
    ask(scene, {
      path: pick(
        [
          '/v1/runs?limit=500',
          '/v1/interactions?limit=500',
          '/v1/runs?label=a%3Db&limit=500',
          '/metrics',
          '/v1/metrics/parsers',
          '/openapi.json',
          `/v1/runs/${scene.ids[0]}/files`,
        ],
        number,
      ),
      token: scene.viewer,
    }),
  'wrong replies': (scene, number) =>
    ask(scene, {
      method: 'POST',
      path: `/v1/runs/${pick(scene.ids, number)}/interaction/reply`,
      token: scene.replier,
      body: JSON.stringify({
        interaction_id: `int_${String(number).padStart(26, '0')}`,
        response: { decision: 'approve' },
      }),
    }),
  // Last: runs with such prompts are slow to store while they run.
  'huge bodies': (scene, number) =>
    ask(scene, {
      method: 'POST',
      path: '/v1/runs',
      body: Buffer.alloc(pick([20, 17, 1], number) * 1024 * 1024, 0x20),
      token: pick([scene.server.token, scene.viewer, 'x'], number),
    }),
  'huge prompts': (scene, number) =>
    number % 6 === 0
      ? create(scene, { engine: 'rehearsal', prompt: `[[done ${number}]]${'p'.repeat(9_000_000)}` })
      : ask(scene, {
          method: 'POST',
          path: '/v1/runs',
          body: JSON.stringify({ engine: 'nope', prompt: 'p'.repeat(9_000_000) }),
        }),
};

interface Stall {
  readonly at: number;
  readonly ms: number;
  // CPU time, measured inside the server.
  readonly cpu?: number;
}

// Answers each question of the turns once, while the load continues.
async function answerAll({ server, ids }: Scene): Promise<void> {
  await Promise.all(
    ids.map(async (id) => {
      await expect.poll(async () => (await server.client.get(id)).status, { timeout: 100_000 }).toBe('waiting_user');
      const { interaction_id: question } = await server.client.interaction(id);
      await server.client.reply(id, { interaction_id: question, response: `answer to ${id}` });
    }),
  );
}

test(
  `${REQUESTS} hostile requests disturb no turn, lose no answer and cause no internal error`,
  { timeout: 240_000 },
  async () => {
    const site = createSite();
    const stalls = join(site.root, 'stalls.jsonl');
    mkdirSync(site.data, { mode: 0o700 });
    writeFileSync(join(site.data, 'config.json'), JSON.stringify({ slots: 4 }));
    const server = await startServer({
      ...site,
      env: { ...site.env, PARLEY_STALLS: stalls, NODE_OPTIONS: `--import=${STALLS}` },
    });
    const tokenOf = (role: 'viewer' | 'replier') =>
      addToken(site.data, role, { role, now: '2026-01-01T00:00:00.000Z' });
    const ids: string[] = [];
    for (let number = 0; number < TURNS; number += 1)
      ids.push(
        (
          await server.client.create({
            engine: 'rehearsal',
            prompt: `[[events 300 200]][[sleep 1000]][[ask Go on?]][[events 300 200]][[sleep 1000]][[done ${number}]]`,
            execution_mode: 'interactive',
          })
        ).run_id,
      );
    const scene: Scene = {
      server,
      viewer: tokenOf('viewer'),
      replier: tokenOf('replier'),
      ids,
      accepted: [],
      sockets: [],
    };
    onTestFinished(() => scene.sockets.forEach((socket) => socket.destroy()));
    const probe = spawn(process.execPath, [PROBE, server.url], { stdio: ['pipe', 'pipe', 'inherit'] });
    const probed = text(probe.stdout);
    const answered = answerAll(scene);

    const phases: { readonly kind: string; readonly from: number; readonly to: number }[] = [];
    const statuses: Record<string, Record<number, number>> = {};
    const kinds = Object.entries(KINDS);
    const each = Math.ceil(REQUESTS / kinds.length);
    for (const [kind, hostile] of kinds) {
      const from = performance.timeOrigin + performance.now();
      const answers = await Promise.all(Array.from({ length: each }, (_, number) => hostile(scene, number)));
      phases.push({ kind, from, to: performance.timeOrigin + performance.now() });
      const counts: Record<number, number> = (statuses[kind] = {});
      for (const { status, body } of answers) {
        counts[status] = (counts[status] ?? 0) + 1;
        expect([500, 502].includes(status), `${kind}: ${status} ${body.slice(0, 300)}`).toBe(false);
        expect(body, kind).not.toMatch(/node_modules|\n {4}at |root:x:0/);
      }
    }
    await answered;
    for (const id of [...ids, ...scene.accepted])
      await expect
        .poll(async () => (await server.client.get(id)).status, { timeout: 100_000, message: id })
        .toMatch(/^(succeeded|failed)$/);
    probe.stdin.end();
    const { asked, longest, slow } = JSON.parse(await probed) as { asked: number; longest: number; slow: Stall[] };

    // Every turn ended as intended, with its answer, and all of it passes verify.
    for (const [number, id] of ids.entries()) {
      expect(await server.client.get(id)).toMatchObject({ status: 'succeeded', result: number, attempt_number: 2 });
      await expect
        .poll(async () => (await server.client.verify(id)).checks.filter(({ ok }) => !ok), { timeout: 60_000 })
        .toEqual([]);
    }
    const known = new Set<string>();
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Awaited<ReturnType<typeof server.client.list>> = await server.client.list({
        limit: 500,
        ...(cursor === '' ? {} : { cursor }),
      });
      for (const { run_id: id } of page.runs) known.add(id);
      cursor = page.next_cursor;
    }
    expect(
      [...ids, ...scene.accepted].filter((id) => !known.has(id)),
      'runs that were accepted and are lost',
    ).toEqual([]);
    // A run whose acceptance did not reach the client before the request timed out exists as well, and ends.
    for (const id of known)
      await expect
        .poll(async () => (await server.client.get(id)).status, { timeout: 100_000, message: id })
        .toMatch(/^(succeeded|failed)$/);
    for (const socket of scene.sockets) socket.destroy();
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    expect([code, /"INTERNAL"|internal error/.test(stderr)], stderr.slice(0, 2000)).toEqual([0, false]);

    const inside = existsSync(stalls)
      ? readFileSync(stalls, 'utf8')
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as Stall)
      : [];
    const own = inside.filter(({ cpu = 0 }) => cpu > 50);
    const phaseOf = ({ at }: Stall): string =>
      phases.find(({ from, to }) => at >= from && at <= to + 20)?.kind ?? 'before and after';
    const byPhase = (all: readonly Stall[]): string[] => {
      const places = new Map<string, number[]>();
      for (const stall of all) places.set(phaseOf(stall), [...(places.get(phaseOf(stall)) ?? []), stall.ms]);
      return [...places].map(([kind, lengths]) => `${kind}: ${lengths.length}, longest ${Math.max(...lengths)} ms`);
    };
    console.info(
      [
        `hostile load: ${phases.length * each} requests of ${phases.length} kinds, ${scene.accepted.length} ` +
          'accepted runs',
        `statuses: ${JSON.stringify(statuses)}`,
        `event-loop stalls above 50 ms inside the server: ${own.length === 0 ? 'none' : byPhase(own).join('; ')} ` +
          `(${inside.length - own.length} more in which it hardly had the CPU)`,
        `answers of /healthz above 50 ms from outside: ${slow.length === 0 ? 'none' : byPhase(slow).join('; ')} ` +
          `(longest of ${asked}: ${longest} ms)`,
      ].join('\n'),
    );
  },
);
