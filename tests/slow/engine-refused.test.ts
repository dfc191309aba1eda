// A run is not created for an engine that is known to be missing or logged out; everything else is left to the turn.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createEngineRuntime } from '../../src/machine/create-engine-runtime.js';
import { KnowledgeFile } from '../../src/machine/knowledge-file.js';
import { DEFAULT_SETTINGS } from '../../src/settings/settings.js';
import { systemTimers } from '../../src/process/timers.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, openBench, type Bench } from '../support/orchestrated.js';
import { createSite, parley } from '../support/command.js';
import { serve } from '../support/served.js';

const THREAD = '{"type":"thread.started","thread_id":"01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c"}';
const REFUSES =
  `echo '${THREAD}'; echo '{"type":"turn.failed","error":{"message":"unexpected status 401 ` +
  `Unauthorized"}}'; exit 1`;
const ACCEPTS = `echo '${THREAD}'; echo '{"type":"turn.completed","usage":{}}'`;

interface Place {
  readonly bench: Bench;
  readonly root: string;
  readonly bin: string;
  readonly login: string;
  readonly file: KnowledgeFile;
  now: number;
  answer(script: string): void;
  play(rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
}

// A codex with scripted responses and the login of a user; its own process knows the results of an earlier one.
async function openPlace(root = createRoot(), env: Record<string, string> = {}): Promise<Place> {
  const [bin, home] = [join(root, 'codex'), join(root, 'user')];
  const login = join(home, '.codex', 'auth.json');
  mkdirSync(join(home, '.codex'), { recursive: true });
  mkdirSync(join(root, 'data'), { recursive: true, mode: 0o700 });
  if (!existsSync(login)) writeFileSync(login, '{}');
  const answer = (script: string): void => {
    writeFileSync(bin, `#!/bin/sh\n${script}\n`);
    chmodSync(bin, 0o755);
  };
  if (!existsSync(bin)) answer(REFUSES);
  const time = { now: Date.UTC(2026, 0, 1) };
  const machine = {
    user: { home, env: { PATH: '/usr/bin:/bin', PARLEY_CODEX_BIN: bin, ...env } },
    node: process.execPath,
    programs: '',
    platform: 'none',
    pid: process.pid,
    askTool: [],
  };
  const file = new KnowledgeFile(join(root, 'data'));
  const { explainUnusable, noteLogin } = createEngineRuntime(machine, DEFAULT_SETTINGS, {
    clock: { now: () => time.now },
    timers: systemTimers,
    file,
  });
  const bench = await openBench(root, {
    runtime: {
      findProgram: async () => [bin],
      ...(explainUnusable ? { explainUnusable } : {}),
      ...(noteLogin ? { noteLogin } : {}),
    },
  });
  return Object.assign(time, {
    bench,
    root,
    bin,
    login,
    file,
    answer,
    play: async (rest: Partial<CreateRunRequest> = {}) =>
      bench.orchestrator.waitUntilIdle(
        (await bench.orchestrator.create({ engine: 'codex', prompt: 'x', ...rest })).run_id,
      ),
  });
}

const LOGGED_OUT = {
  code: 'ENGINE_LOGGED_OUT',
  message: expect.stringMatching(
    /codex refused your login .* Log in: codex login, or set CODEX_API_KEY\. To create the run anyway: --force/,
  ),
};

test('a login that the engine refused is not retried, however a run is created, until something changes', async () => {
  const place = await openPlace();
  const failed = await place.play();
  expect(failed).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  const { orchestrator } = place.bench;
  await expect(place.play()).rejects.toMatchObject(LOGGED_OUT);
  for (const call of [
    () => orchestrator.retry(failed.run_id),
    () => orchestrator.create({ engine: 'codex', prompt: 'y', execution_mode: 'interactive' }),
  ])
    await expect(call()).rejects.toMatchObject(LOGGED_OUT);
  expect(await place.bench.data.store.listRuns({ limit: 10 })).toHaveLength(1);
  // Another model may have another provider; another engine has another login.
  expect(await place.play({ model: 'other' })).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  utimesSync(place.login, 1, 1);
  expect(await place.play()).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  await place.bench.close();
});

test('force creates the run anyway, and a success clears the refusal', async () => {
  const place = await openPlace();
  await place.play();
  expect(await place.play({ force: true })).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  place.answer(ACCEPTS);
  expect(await place.play({ force: true })).toMatchObject({ status: 'succeeded' });
  expect(await place.play()).toMatchObject({ status: 'succeeded' });
  await place.bench.close();
});

test('a refusal is known to the next process, is forgotten after an hour, and keeps no secret', async () => {
  const place = await openPlace(undefined, { CODEX_API_KEY: 'sk-very-secret-1234' });
  await place.play();
  await place.bench.close();
  await place.file.written();
  expect(readFileSync(join(place.root, 'data', 'engines.json'), 'utf8')).not.toContain('very-secret');
  const next = await openPlace(place.root, { CODEX_API_KEY: 'sk-very-secret-1234' });
  await expect(next.play()).rejects.toMatchObject(LOGGED_OUT);
  next.now += 61 * 60 * 1000;
  expect(await next.play()).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  await next.bench.close();
  await next.file.written();
  const other = await openPlace(place.root, { CODEX_API_KEY: 'sk-another-9876' });
  expect(await other.play()).toMatchObject({ error: { code: 'ENGINE_AUTH_REQUIRED' } });
  await other.bench.close();
});

test('the same request is the same run, with and without force', async () => {
  const place = await openPlace();
  place.answer(ACCEPTS);
  const first = await place.play({ request_id: 'key' });
  rmSync(place.bin);
  for (const force of [true, false]) expect((await place.play({ request_id: 'key', force })).run_id).toBe(first.run_id);
  await expect(place.play()).rejects.toMatchObject({
    code: 'ENGINE_NOT_INSTALLED',
    message: expect.stringContaining(place.bin),
  });
  await place.bench.close();
});

test('over HTTP a missing engine is a refusal with the way out, and force overrides it', async () => {
  const place = await openPlace();
  rmSync(place.bin);
  const { explainUnusable } = place.bench.deps.runtime;
  const served = await serve({
    bench: { runtime: { ...(explainUnusable ? { explainUnusable } : {}), findProgram: async () => null } },
  });
  const post = (body: object) =>
    served.fetch('/v1/runs', { method: 'POST', body: JSON.stringify({ engine: 'codex', prompt: 'x', ...body }) });
  const refused = await post({});
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({
    error: { code: 'ENGINE_NOT_INSTALLED', message: expect.stringContaining('"force": true') },
  });
  expect((await post({ force: true })).status).toBe(201);
  await served.close();
  await place.bench.close();
});

test('the command line refuses a missing engine, says how to install it, and takes --force', async () => {
  const site = createSite();
  const env = { PATH: '/nowhere', PARLEY_CODEX_BIN: '' };
  const refused = await parley(site, ['run', 'codex', 'hi'], { env });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain(
    'codex was not found on PATH (npm install -g @openai/codex). To create the run anyway: --force',
  );
  const forced = await parley(site, ['run', 'codex', 'hi', '--force'], { env });
  expect(forced.stdout).toMatch(/✗ failed: ENGINE_NOT_FOUND/);
});
