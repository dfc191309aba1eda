// A running server applies a changed config.json, reports which settings need a restart, and keeps its settings if the
// file is invalid. Needs the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSite, parley } from '../../support/command.js';
import { startServer } from '../../support/served-process.js';

const PATIENCE = { timeout: 20_000, interval: 100 };

test('defaults of a running server change without a restart; an invalid file changes nothing', async () => {
  const site = createSite();
  const { client, child, ended } = await startServer(site);
  let log = '';
  child.stderr.on('data', (text: string) => (log += text));
  const create = () => client.create({ engine: 'rehearsal', prompt: '[[done {}]]' });
  expect(await create()).toMatchObject({ permission: 'workspace-write', execution_mode: 'auto' });

  for (const [name, value, effect] of [
    ['defaults.permission', 'read-only', 'A running server applies it within a few seconds.'],
    ['defaults.mode', 'interactive', 'A running server applies it within a few seconds.'],
    ['defaults.model.rehearsal', 'small', 'A running server applies it within a few seconds.'],
    ['max_streams', '9', 'Restart the server to apply it.'],
  ] as const)
    expect((await parley(site, ['config', 'set', name, value])).stdout).toContain(effect);
  const changed = { permission: 'read-only', execution_mode: 'interactive', model: 'small' };
  await expect.poll(create, PATIENCE).toMatchObject(changed);
  await expect.poll(() => log, PATIENCE).toContain('restart the server to apply: max_streams');
  const explicit = { permission: 'full', execution_mode: 'auto', model: 'large' } as const;
  expect(await client.create({ engine: 'rehearsal', prompt: '[[done {}]]', ...explicit })).toMatchObject(explicit);
  await expect
    .poll(async () => (await parley(site, ['audit', '--json'])).stdout, PATIENCE)
    .toMatch(/settings\.changed.*defaults/);

  const path = join(site.data, 'config.json');
  const valid = readFileSync(path, 'utf8');
  writeFileSync(path, '{"defaults":{"permission":"all"},"slotz":1}');
  await expect.poll(() => log, PATIENCE).toContain('The changed settings are not applied');
  expect(log).toContain('Did you mean \\"slots\\"?');
  expect(await create()).toMatchObject(changed);
  writeFileSync(path, valid.replace('read-only', 'full'));
  await expect.poll(create, PATIENCE).toMatchObject({ ...changed, permission: 'full' });
  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
});

test('parley run uses defaults.mode when no flag is given', async () => {
  const site = createSite();
  await parley(site, ['config', 'set', 'defaults.mode', 'interactive']);
  const run = async (...flags: string[]): Promise<unknown> =>
    JSON.parse((await parley(site, ['run', 'rehearsal', '[[done {}]]', '--json', '-d', ...flags])).stdout);
  expect(await run()).toMatchObject({ run: { execution_mode: 'interactive' } });
  expect(await run('--auto')).toMatchObject({ run: { execution_mode: 'auto' } });
});
