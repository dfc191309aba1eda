// The home of an instance: problems of the home arrive as errors of the library, when it is opened and before each
// turn.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openAgentHome } from '../../src/app-server/agent-home.js';
import { AppServerError } from '../../src/app-server/app-server-error.js';
import { createRoot } from '../support/orchestrated.js';

test("the user's own home and the home of another instance are refused with in_use", async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: {} };
  const [own, first] = [join(root, 'user/.codex'), join(root, 'first')];
  for (const folder of [own, first]) mkdirSync(folder, { recursive: true });
  const errorOf = (path: string, owner: string) =>
    openAgentHome(path, { owner, user }).catch((error: unknown) => error);
  const refused = await errorOf(own, first);
  expect(refused).toBeInstanceOf(AppServerError);
  expect(refused).toMatchObject({ code: 'in_use', message: expect.stringContaining("user's own home") });
  await openAgentHome(join(root, 'home'), { owner: first, user });
  const second = await errorOf(join(root, 'home'), join(root, 'second'));
  expect(second).toBeInstanceOf(AppServerError);
  expect(second).toMatchObject({ code: 'in_use', message: expect.stringContaining(first) });
});

test('settings that stop being TOML are refused with bad_options before a turn', async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: {} };
  const home = await openAgentHome(join(root, 'home'), { owner: root, user });
  home.admit(root);
  writeFileSync(join(home.path, 'config.toml'), 'model = ');
  let refused: unknown;
  try {
    home.admit(root);
  } catch (error) {
    refused = error;
  }
  expect(refused).toBeInstanceOf(AppServerError);
  expect(refused).toMatchObject({ code: 'bad_options', message: expect.stringContaining('config.toml') });
});
