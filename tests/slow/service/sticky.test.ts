// sessions.sticky over HTTP, in the client and on the command line: how a run waits is shown while the setting is on,
// and not while it is off.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSite, parley, type Site } from '../../support/command.js';
import { startServer, type ServerProcess } from '../../support/served-process.js';

const STICKY_WORDS = /interactive_profile|sticky|wait_deadline|INTERACTION_WAIT_TIMEOUT|INTERACTION_PROCESS_LOST/i;

async function serveWith(site: Site, sticky: boolean): Promise<ServerProcess> {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  writeFileSync(
    join(site.data, 'config.json'),
    JSON.stringify({ sessions: { sticky }, env_passthrough: ['STAND_IN_RESUME'] }),
  );
  return startServer(site, undefined, { env: { STAND_IN_RESUME: 'no' } });
}

async function stop({ child, ended }: ServerProcess): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}

const bodyOf = async (server: ServerProcess, path: string): Promise<string> =>
  (await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${server.token}` } })).text();

test('with the setting on, the first run of a new server states how and how long it waits; off, no trace', async () => {
  const site = createSite();
  const server = await serveWith(site, true);
  const created = await server.client.create({
    engine: 'codex-app-server',
    prompt: '[[say Hello.]]',
    execution_mode: 'interactive',
  });
  expect(created).toMatchObject({ interactive_profile: { kind: 'sticky_process' }, wait_deadline_at: null });
  const resumable = await server.client.create({
    engine: 'codex',
    prompt: '[[ask Which?]]',
    execution_mode: 'interactive',
  });
  expect(resumable).toMatchObject({ interactive_profile: { kind: 'resumable' } });
  await expect.poll(async () => (await server.client.get(created.run_id)).status).toBe('waiting_user');
  const waiting = await server.client.get(created.run_id);
  expect(waiting).toMatchObject({
    interactive_profile: { kind: 'sticky_process' },
    wait_deadline_at: waiting.interaction?.due_at,
  });
  const { runs } = await server.client.list();
  expect(runs.map((run) => run.interactive_profile?.kind).toSorted()).toEqual(['resumable', 'sticky_process']);
  expect(
    JSON.parse((await parley(site, ['show', created.run_id, '--json'])).stdout.split('\n')[0] ?? ''),
  ).toMatchObject({
    run: { interactive_profile: { kind: 'sticky_process' }, wait_deadline_at: waiting.wait_deadline_at },
  });
  expect(await bodyOf(server, '/openapi.json')).toContain('wait_deadline_at');
  expect(await bodyOf(server, '/v1/contract')).toContain('sticky');
  await stop(server);
  const off = await serveWith(site, false);
  const plain = await off.client.create({ engine: 'codex', prompt: '[[ask Which?]]', execution_mode: 'interactive' });
  for (const path of [
    '/openapi.json',
    '/v1/contract',
    '/v1/runs',
    `/v1/runs/${created.run_id}`,
    `/v1/runs/${plain.run_id}`,
  ]) {
    expect((await bodyOf(off, path)).replaceAll(/"error":\{[^}]*\}/g, ''), path).not.toMatch(STICKY_WORDS);
  }
  await stop(off);
});

test('GET /v1/engines returns the version of a program behind a wrapper script once probed', async () => {
  const site = createSite();
  const wrapper = join(site.root, 'wrapped');
  writeFileSync(wrapper, `#!/bin/sh\nexec ${site.env['PARLEY_CODEX_BIN']} "$@"\n`, { mode: 0o755 });
  const server = await startServer(site, undefined, { env: { PARLEY_CODEX_BIN: wrapper } });
  const codex = async () =>
    (
      JSON.parse(await bodyOf(server, '/v1/engines')) as {
        engines: { name: string; version: string | null; program: string }[];
      }
    ).engines.find(({ name }) => name === 'codex');
  expect(await codex()).toMatchObject({ program: wrapper });
  await expect.poll(async () => (await codex())?.version).toBe('0.166.0');
  await stop(server);
});
