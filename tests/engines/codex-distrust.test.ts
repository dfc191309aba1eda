// A workspace of Codex is not trusted because it may be written, but because its user has said so.
import { expect, test } from 'vitest';
import { distrustWorkspace } from '../../src/engines/codex/distrust.js';

const NEEDS = { ask: null, permission: 'workspace-write', cwd: '/home/ann/a "b"/work', project: '/home/ann/a "b"' } as const;
const ADDED = '\n[projects."/home/ann/a \\"b\\"/work"]\ntrust_level = "untrusted"\n';

test.each([
  [null, ADDED],
  ['model = "x"', `model = "x"\n${ADDED}`],
  // Codex does not look there.
  ['[projects."/home/ann"]\ntrust_level = "trusted"\n', `[projects."/home/ann"]\ntrust_level = "trusted"\n${ADDED}`],
])('settings %j that say nothing about the folder say that it is not trusted, once', (config, text) => {
  expect(distrustWorkspace(config, NEEDS)).toBe(text);
  expect(distrustWorkspace(text, NEEDS)).toBe(text);
});

test.each([
  '[projects."/home/ann/a \\"b\\"/work"]\ntrust_level = "trusted"\n',
  "[projects.'/home/ann/a \"b\"']\ntrust_level = \"trusted\"\n",
  'model = "x"\n\n[ projects . "/home/ann/a \\"b\\"" ] # all of it\ntrust_level = "trusted"\n',
  'projects = { "/home/ann" = { trust_level = "trusted" } }\n',
])('what the user has decided stays: %j', (config) => {
  expect(distrustWorkspace(config, NEEDS)).toBe(config);
});

test.each(['read-only', 'full'] as const)('with the permission %s nothing is added: Codex trusts no folder by itself then, or everything is allowed', (permission) => {
  expect(distrustWorkspace('model = "x"\n', { ...NEEDS, permission })).toBe('model = "x"\n');
});
