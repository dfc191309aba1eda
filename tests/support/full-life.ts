// A data directory with every kind of content: runs of several engines, questions, approvals, failures, tokens,
// webhooks, recordings, archives, logs, written by the built program while every kind of secret passes through it.
// Keeps everything observed on the way.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import { createSite, parley, type Ended, type Site } from './command.js';
import { afterEachFile } from './hooks.js';
import { startServer, type ServerProcess } from './served-process.js';

// Each one is unique.
export const SECRETS = {
  hookSecretInEnvironment: 'hook-secret-of-env-4b1f27',
  hookSecretInFile: 'hook-secret-of-file-93ac01',
  hookAddress: 'hook-address-77d0e5',
  codexKey: 'codex-key-51e8aa20',
  geminiKey: 'gemini-key-0c9d77fe',
  otherKey: 'unrelated-key-aa00127c',
  codexLogin: 'codex-login-2f6b8811',
  strayToken: 'token-in-an-address-d41c9e',
  basicPassword: 'basic-password-6610fc',
} as const;

interface Process {
  readonly argv: string;
  readonly environment: string;
}

export interface Life {
  readonly site: Site;
  // The folder for temporary files of programs.
  readonly temporary: string;
  readonly hookSecretFile: string;
  readonly tokens: { readonly operator: string; readonly viewer: string; readonly cookie: string };
  // By engine, while it was running, with its child processes.
  readonly engines: Readonly<Record<string, readonly Process[]>>;
  readonly server: Process;
  // The responses to a client, by request.
  readonly answers: Readonly<Record<string, string>>;
  readonly printed: Readonly<Record<string, string>>;
  readonly deliveries: number;
}

const PATIENCE = { timeout: 30_000, interval: 20 } as const;
const ASK = '[[ask Which?|a|b]]';

// Also ends a server whose start fails before the first test, for which no hook of a test runs.
const servers: ServerProcess[] = [];
afterEachFile(() => {
  for (const { child } of servers.splice(0)) child.kill('SIGKILL');
});

// `whileServing` inspects the directory while the server uses it.
export async function playFullLife(whileServing: (site: Site) => void): Promise<Life> {
  const site = createSite();
  const [temporary, hookSecretFile] = [join(site.root, 'tmp'), join(site.root, 'hook.secret')];
  mkdirSync(temporary, { mode: 0o700 });
  writeFileSync(hookSecretFile, SECRETS.hookSecretInFile, { mode: 0o600 });
  mkdirSync(join(site.env['HOME'] ?? '', '.codex', 'skills'), { recursive: true });
  writeFileSync(
    join(site.env['HOME'] ?? '', '.codex', 'auth.json'),
    JSON.stringify({ tokens: { access_token: SECRETS.codexLogin } }),
    { mode: 0o600 },
  );
  writeFileSync(join(site.env['HOME'] ?? '', '.codex', 'AGENTS.md'), 'Be kind.\n', { mode: 0o644 });
  writeFileSync(join(site.env['HOME'] ?? '', '.codex', 'skills', 'open.md'), 'A skill.\n', { mode: 0o666 });
  const living = {
    ...site,
    env: {
      ...site.env,
      TMPDIR: temporary,
      CHAT_SECRET: SECRETS.hookSecretInEnvironment,
      CODEX_API_KEY: SECRETS.codexKey,
      GEMINI_API_KEY: SECRETS.geminiKey,
      SOME_API_KEY: SECRETS.otherKey,
    },
  };
  const calls: Record<string, Ended> = {};
  const call = async (name: string, ...args: string[]): Promise<string> =>
    (calls[name] = await parley(living, args)).stdout.trim();
  // Creates the directory.
  const viewer = await call('token', 'token', 'add', 'anna', '--role', 'viewer');
  // The first delivery fails.
  let deliveries = 0;
  const receiver = createServer(
    (request, response) =>
      void request.resume().on('end', () => response.writeHead((deliveries += 1) === 1 ? 500 : 200).end()),
  );
  await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve));
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${SECRETS.hookAddress}`;
  writeFileSync(
    join(site.data, 'config.json'),
    JSON.stringify({
      webhooks: [
        { name: 'chat', url: hook, secret_env: 'CHAT_SECRET' },
        { name: 'file', url: hook, secret_file: hookSecretFile },
        { name: 'dead', url: `http://127.0.0.1:1/${SECRETS.hookAddress}`, secret_env: 'CHAT_SECRET' },
      ],
    }),
    { mode: 0o600 },
  );
  const server = await startServer(living, ['--port', '0', '--log-level', 'debug']);
  servers.push(server);
  const { client, token, url } = server;
  const engines: Record<string, Process[]> = {};
  const answers: Record<string, string> = {};
  const get = async (
    path: string,
    headers: Record<string, string> = { authorization: `Bearer ${token}` },
  ): Promise<Response> => {
    const answer = await fetch(`${url}${path}`, { headers, redirect: 'manual' });
    answers[path.replace(viewer, 'TOKEN')] = await answer.clone().text();
    return answer;
  };
  const becomes = (id: string, status: string) =>
    vi.waitFor(async () => expect((await client.get(id)).status).toBe(status), PATIENCE);
  // Recorded while it runs.
  const play = async (engine: string, prompt: string): Promise<string> => {
    const { run_id: id } = await client.create({ engine, prompt, execution_mode: 'interactive', permission: 'full' });
    await vi.waitFor(() => {
      engines[engine] = listMarked()
        .filter(({ mark }) => mark?.startsWith(`${id}/`))
        .map(({ pid }) => lookAt(pid));
      expect(engines[engine].some(({ argv, environment }) => argv !== '' && environment !== '')).toBe(true);
    }, PATIENCE);
    return id;
  };
  const answer = async (id: string, response: object | string): Promise<void> => {
    await becomes(id, 'waiting_user');
    await client.reply(id, {
      interaction_id: (await client.interaction(id)).interaction_id,
      response: response as string,
    });
  };
  const codex = await play('codex', `[[sleep 1500]] [[file made.txt]] [[tool umask]] ${ASK} [[done 1]]`);
  const gemini = await play('gemini', `[[sleep 1500]] [[file made.txt]] ${ASK} [[done 1]]`);
  const stays = await play(
    'codex-app-server',
    '[[work 1500]] [[approve echo hi > made.txt]] [[input Which?|a|b]] [[done 1]]',
  );
  const failing = await play('rehearsal', '[[sleep 1500]] [[stderr 3]] [[fail]]');
  for (const id of [codex, gemini]) await answer(id, 'a');
  await answer(stays, { decision: 'approve' });
  await answer(stays, 'a');
  for (const id of [codex, gemini, stays]) await becomes(id, 'succeeded');
  await becomes(failing, 'failed');
  const { run_id: fork } = await client.fork(codex, { prompt: '[[done 2]]' });
  await becomes(fork, 'succeeded');
  const signedIn = await fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ token: viewer }),
  });
  const cookie = /=([^;]+)/.exec(signedIn.headers.get('set-cookie') ?? '')?.[1] ?? '';
  for (const path of [
    '/metrics',
    '/v1/runs',
    '/v1/engines',
    '/openapi.json',
    '/docs',
    '/v1/me',
    `/v1/runs/${codex}/archive`,
    `/v1/runs/${codex}/rasp/history`,
    `/v1/runs/${codex}/files`,
    `/v1/runs/${codex}/verify`,
    `/v1/runs/${failing}/logs?stream=stderr`,
  ])
    await get(path);
  // Places where people put secrets by mistake.
  for (const [path, headers] of [
    [`/v1/runs?token=${SECRETS.strayToken}`, {}],
    [`/sign-in?token=${SECRETS.strayToken}`, {}],
    [`/none/${SECRETS.strayToken}`, {}],
    ['/v1/me', { authorization: `Bearer ${SECRETS.strayToken}` }],
    ['/v1/me', { authorization: `Basic ${btoa(`ann:${SECRETS.basicPassword}`)}` }],
    ['/v1/me', { cookie: `parley_000000000000=${SECRETS.strayToken}` }],
  ] as const)
    expect((await get(path, { ...headers })).status).toBe(401);
  await vi.waitFor(() => expect(deliveries).toBeGreaterThan(4), PATIENCE);
  whileServing(living);
  const seen = lookAt(server.child.pid ?? 0);
  await call('ls', 'ls');
  await call('show', 'show', codex);
  await call('verify', 'verify', '--all');
  server.child.kill('SIGTERM');
  calls['serve'] = await server.ended;
  receiver.close();
  // Without a server: in its own worker.
  await call('run', 'run', 'rehearsal', '[[answer x]] [[done 1]]', '--scratch');
  await call('doctor', 'doctor');
  expect(Object.fromEntries(Object.entries(calls).map(([name, { code }]) => [name, code]))).toEqual({
    token: 0,
    ls: 0,
    show: 0,
    verify: 0,
    serve: 0,
    run: 0,
    doctor: 0,
  });
  return {
    site: living,
    temporary,
    hookSecretFile,
    tokens: { operator: token, viewer, cookie },
    engines,
    server: seen,
    answers,
    printed: Object.fromEntries(
      Object.entries(calls).flatMap(([name, { stdout, stderr }]) => [
        [`${name} stdout`, stdout],
        [`${name} stderr`, stderr],
      ]),
    ),
    deliveries,
  };
}

function lookAt(pid: number): Process {
  const read = (name: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, 'utf8').replaceAll('\0', '\n');
    } catch {
      // It has just ended.
      return '';
    }
  };
  return { argv: read('cmdline'), environment: read('environ') };
}
