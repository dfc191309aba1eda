// A data directory that others can access, because it existed before or was restored from a backup: doctor and serve
// report it with a fix.
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ENGLISH } from '../../src/cli/language/en.js';
import { describeOpen } from '../../src/cli/serving/open-to-others.js';
import { createRoot } from '../support/orchestrated.js';
import { createSite, parley } from '../support/command.js';
import { startServer } from '../support/served-process.js';

test.each([
  ['a folder that others may write to', '', 0o777, /write to it and so start programs as you/],
  ['one that a group may write to', '', 0o770, /write to it/],
  ['settings that others may write to', 'config.json', 0o666, /write to config\.json/],
  ['a token that others can read', 'token', 0o644, /token is open to other users/],
  ['a database that a group can read', 'parley.db', 0o640, /parley\.db is open to other users/],
  ['the folders of runs', 'runs', 0o755, /runs is open to other users/],
])('%s is reported', (_what, name, mode, message) => {
  const root = join(createRoot(), 'data');
  mkdirSync(join(root, 'runs'), { recursive: true, mode: 0o700 });
  for (const file of ['config.json', 'token', 'parley.db']) writeFileSync(join(root, file), '{}', { mode: 0o600 });
  expect(describeOpen(root, 'linux', ENGLISH.doctor)).toBeNull();
  chmodSync(join(root, name), mode);
  expect(describeOpen(root, 'linux', ENGLISH.doctor)).toMatch(message);
  expect(describeOpen(root, 'win32', ENGLISH.doctor)).toBeNull();
});

test('doctor and serve report it, and new files are not readable by others', async () => {
  const site = createSite();
  mkdirSync(site.data);
  chmodSync(site.data, 0o777);
  const server = await startServer(site);
  server.child.kill('SIGTERM');
  expect((await server.ended).stderr).toMatch(/other users can write to it/);
  const { stdout } = await parley(site, ['doctor']);
  expect(stdout).toMatch(/! modes .*other users can write to it.*chmod -R go= /);
  for (const name of ['token', 'parley.db', 'lock.db', 'writer.json'])
    expect(existsSync(join(site.data, name)), name).toBe(true);
  chmodSync(site.data, 0o700);
  expect(describeOpen(site.data, 'linux', ENGLISH.doctor)).toBeNull();
});
