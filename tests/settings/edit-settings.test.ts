// Single settings are shown with their origin, and a change never leaves a file that would be refused.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { changeSetting, showSetting, showSettings } from '../../src/settings/edit-settings.js';
import { SETTINGS } from '../../src/settings/list-settings.js';
import { readSettings } from '../../src/settings/read-settings.js';
import { settingsSchema } from '../../src/settings/settings.js';

let dir: string;
beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), 'parley-settings-')), 'data');
});
afterEach(() => rmSync(join(dir, '..'), { recursive: true, force: true }));

const config = () => readFileSync(join(dir, 'config.json'), 'utf8');

test('the list has every setting of the schema, with a description', () => {
  const top = new Set(SETTINGS.map(({ name }) => name.split('.')[0]));
  expect([...top]).toEqual(Object.keys(settingsSchema.shape));
  expect(SETTINGS.filter(({ description }) => description === '')).toEqual([]);
  expect(SETTINGS.map(({ name }) => name)).toContain('engines.codex.bin');
  expect(SETTINGS.map(({ name }) => name)).toContain('defaults.model.codex');
});

test('a setting without a default names what applies instead', () => {
  const unexplained = SETTINGS.filter(({ default: value, whenEmpty }) => (value === null) !== (whenEmpty !== null));
  expect(unexplained.map(({ name }) => name)).toEqual([]);
});

test('each setting of the schema declares whether a running server applies a change', () => {
  const declared = Object.values(settingsSchema.shape).map((schema) => schema.meta()?.['x-applies']);
  expect(new Set(declared)).toEqual(new Set(['at once', 'after a restart']));
  expect(SETTINGS.find(({ name }) => name === 'defaults.model.codex')).toMatchObject({ applies: 'at once' });
  expect(SETTINGS.find(({ name }) => name === 'cluster.lease_sec')).toMatchObject({ applies: 'after a restart' });
});

test('the origin is the default, config.json or an environment variable', () => {
  expect(showSetting(dir, 'queue_limit', {})).toMatchObject({ value: 10_000, origin: 'default' });
  changeSetting(dir, 'queue_limit', '5');
  changeSetting(dir, 'engines.codex-app-server.bin', '/opt/codex');
  expect(showSetting(dir, 'queue_limit', {})).toMatchObject({ value: 5, origin: 'config.json' });
  expect(showSetting(dir, 'engines.codex-app-server.bin', {})).toMatchObject({ value: '/opt/codex' });
  expect(
    showSetting(dir, 'engines.codex-app-server.bin', { PARLEY_CODEX_APP_SERVER_BIN: '/usr/bin/codex' }),
  ).toMatchObject({ value: '/usr/bin/codex', origin: 'PARLEY_CODEX_APP_SERVER_BIN' });
  expect(showSettings(dir, {}).filter(({ origin }) => origin !== 'default')).toHaveLength(2);
});

test.each([
  ['slots', '4', 4],
  ['recovery.queued', 'requeue', 'requeue'],
  ['workspace_roots', '["/work"]', ['/work']],
  ['defaults.turn_timeout_sec', 'null', null],
  ['defaults.mode', 'interactive', 'interactive'],
  ['defaults.permission', 'read-only', 'read-only'],
  ['defaults.model.codex', 'gpt-5', 'gpt-5'],
  ['sessions.sticky', 'true', true],
  // A text that happens to be JSON.
  ['engines.codex.bin', '7', '7'],
])('a change of %s to %s is read back by the server', (name, text, value) => {
  expect(changeSetting(dir, name, text).value).toEqual(value);
  let read: unknown = readSettings(dir);
  for (const key of name.split('.')) read = (read as Record<string, unknown>)[key];
  expect(read).toEqual(value);
});

test('a change keeps the other settings, and unset removes the setting and its empty group', () => {
  changeSetting(dir, 'recovery.queued', 'requeue');
  changeSetting(dir, 'recovery.running', 'retry');
  changeSetting(dir, 'slots', '2');
  changeSetting(dir, 'recovery.queued', null);
  expect(JSON.parse(config())).toEqual({ recovery: { running: 'retry' }, slots: 2 });
  changeSetting(dir, 'recovery.running', null);
  expect(JSON.parse(config())).toEqual({ slots: 2 });
});

test.each([
  ['slots', 'zero', 'slots cannot be "zero"'],
  ['slots', '0', 'slots'],
  ['slot', '4', 'Did you mean "slots"?'],
  ['recovery', 'fail', 'recovery.queued, recovery.running'],
  ['engines.codx.bin', '/x', 'Did you mean "engines.codex.bin"?'],
  ['defaults.model.codx', 'gpt-5', 'Did you mean "defaults.model.codex"?'],
  ['defaults.model.codex', '--help', 'it takes a model name'],
  ['defaults.mode', 'ask', 'it takes "auto" or "interactive"'],
  ['__proto__.polluted', 'true', 'There is no setting'],
  ['webhooks', '[{"name":"a","url":"ftp://x"}]', 'http'],
])('%s = %s is refused, and the file stays as it was', (name, text, message) => {
  changeSetting(dir, 'queue_limit', '7');
  const before = config();
  expect(() => changeSetting(dir, name, text)).toThrow(message);
  expect(config()).toBe(before);
  expect(existsSync(join(dir, 'config.json.lock'))).toBe(false);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test('a file that is not valid is refused and not overwritten', () => {
  changeSetting(dir, 'slots', '2');
  writeFileSync(join(dir, 'config.json'), '{ "slots": ');
  expect(() => changeSetting(dir, 'slots', '3')).toThrow('is not JSON');
  expect(config()).toBe('{ "slots": ');
});

test('a linked file is changed where it is', () => {
  const elsewhere = join(dir, '..', 'settings.json');
  writeFileSync(elsewhere, '{"slots": 2}');
  mkdirSync(dir);
  symlinkSync(elsewhere, join(dir, 'config.json'));
  changeSetting(dir, 'slots', '3');
  expect(JSON.parse(readFileSync(elsewhere, 'utf8'))).toEqual({ slots: 3 });
  expect(lstatSync(join(dir, 'config.json')).isSymbolicLink()).toBe(true);
});

test('a second change at the same time is refused', () => {
  changeSetting(dir, 'slots', '2');
  writeFileSync(join(dir, 'config.json.lock'), '');
  expect(() => changeSetting(dir, 'slots', '3')).toThrow('Another process is changing the settings');
  expect(JSON.parse(config())).toEqual({ slots: 2 });
});
