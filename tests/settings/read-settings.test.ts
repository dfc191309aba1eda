// config.json: defaults, values, and the messages for files that cannot be used.
import { textOf } from '../../src/messages/phrase.js';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProblems, readSettings } from '../../src/settings/read-settings.js';
import { DEFAULT_SETTINGS } from '../../src/settings/settings.js';
import { createRoot } from '../support/orchestrated.js';

const put = (path: string, text: string): void => writeFileSync(path, text);

test('settings: none is the default, known ones are taken, anything else is refused and named', async () => {
  const folder = createRoot();
  expect(readSettings(folder)).toEqual(DEFAULT_SETTINGS);
  expect(readSettings(join(folder, 'nowhere'))).toEqual(DEFAULT_SETTINGS);
  put(
    join(folder, 'config.json'),
    '{"slots":3,"engines":{"codex":{"bin":"/opt/codex"}},"recovery":{"queued":"requeue"}}',
  );
  expect(readSettings(folder)).toEqual({
    ...DEFAULT_SETTINGS,
    slots: 3,
    engines: { codex: { bin: '/opt/codex' } },
    recovery: { queued: 'requeue', running: 'fail' },
  });
  for (const [text, problem] of [
    ['{', /config\.json is not JSON/],
    ['[]', /The config cannot be an empty list: it takes an object/],
    ['null', /The config cannot be null: it takes an object/],
    ['{"slot":1}', /There is no setting "slot"\. Did you mean "slots"\?/],
    [
      '{"toString":1}',
      /There is no setting "toString"\. The settings are engines, env_passthrough, workspace_instructions, slots, /,
    ],
    ['{"slots":0}', /slots cannot be 0: the least is 1/],
    ['{"slots":"many"}', /slots cannot be "many": it takes a whole number\./],
    ['{"slots":1.5}', /slots cannot be 1.5: it takes a whole number\./],
    [
      '{"defaults":{"turn_timeout_sec":"1h"}}',
      /defaults\.turn_timeout_sec cannot be "1h": it takes a number or null\./,
    ],
    ['{"sessions":{"sticky":1}}', /sessions\.sticky cannot be 1: it takes true or false\./],
    ['{"cluster":[]}', /cluster cannot be an empty list: it takes an object\./],
    ['{"shutdown_grace_sec":3601}', /shutdown_grace_sec cannot be 3601: the most is 3600\./],
    ['{"cluster":{"lease":1}}', /There is no "lease" in cluster; (?:did you mean|there are)/],
    ['{"engines":{"codex":{"path":"/x"}}}', /There is no "path" in engines.codex; the only name there is bin/],
    ['{"env_passthrough":["*"]}', /env_passthrough\[0\] cannot be "\*": it takes the name of an environment variable/],
    ['{"recovery":{"queued":"later"}}', /recovery\.queued cannot be "later": it takes "fail" or "requeue"/],
  ] as const) {
    put(join(folder, 'config.json'), text);
    expect(() => readSettings(folder), text).toThrow(problem);
  }
});

test('settings: a webhook has a unique name, an HTTP address without credentials and one secret source', async () => {
  const folder = createRoot();
  const hook = { name: 'chat', url: 'https://example.org/in?x=1', secret_env: 'CHAT_SECRET' };
  const read = (webhooks: unknown) => {
    put(join(folder, 'config.json'), JSON.stringify({ webhooks }));
    return readSettings(folder).webhooks;
  };
  const other = {
    name: 'file',
    url: 'http://127.0.0.1:9/',
    secret_file: '/run/secret',
    events: ['failed', 'waiting_user'],
  };
  expect(read([hook, other])).toEqual([hook, other]);
  for (const [webhooks, problem] of [
    [[hook, hook], /Two webhooks are called "chat"/],
    [[{ ...hook, name: 'a b' }], /webhooks\[0\]\.name cannot be "a b": it takes 1 to 64 letters/],
    [[{ ...hook, url: 'ftp://example.org' }], /Webhook "chat": its url does not begin with http/],
    [[{ ...hook, url: 'example.org' }], /Webhook "chat": its url does not begin with http/],
    [[{ ...hook, url: 'https://ann:hidden@example.org' }], /Webhook "chat": its url has a user or a password in it/],
    [[{ ...hook, secret_file: '/x' }], /exactly one of secret_env and secret_file/],
    [[{ name: 'chat', url: hook.url }], /exactly one of secret_env and secret_file/],
    [[{ name: 'chat', url: hook.url, secret_file: 'x' }], /secret_file cannot be "x": it takes an absolute path/],
    [[{ ...hook, events: ['running'] }], /events\[0\] cannot be "running": it takes "waiting_user", /],
    [[{ ...hook, events: [] }], /events is empty/],
    [[{ ...hook, secret: 'x' }], /There is no "secret" in webhooks\[0\]; there are name, url/],
  ] as const)
    expect(() => read(webhooks), JSON.stringify(webhooks)).toThrow(problem);
  expect(() => read([{ ...hook, url: 'https://ann:hidden@example.org' }])).not.toThrow(/hidden/);
});

test('settings: all problems are reported, each as a sentence of its own', async () => {
  const problems = findProblems({
    slot: 1,
    slots: 0,
    engines: { codx: { bin: '/x' }, codex: { path: '/x' } },
    defaults: { mode: 'ask', model: { gemni: 'x', codex: '--version' } },
    webhooks: [
      { name: 'a', url: 'ftp://x', secret_env: 'S' },
      { name: 'a', url: 'https://x' },
    ],
  });
  expect(problems.map(textOf)).toEqual([
    'There is no setting "slot". Did you mean "slots"?',
    'There is no "path" in engines.codex; the only name there is bin.',
    'slots cannot be 0: the least is 1.',
    'defaults.mode cannot be "ask": it takes "auto" or "interactive".',
    expect.stringMatching(/^defaults\.model\.codex cannot be "--version": it takes a model name: /),
    'engines: there is no engine "codx". Did you mean "codex"?',
    'defaults.model: there is no engine "gemni". Did you mean "gemini"?',
    'Webhook "a": its url does not begin with http:// or https://.',
    'Webhook "a": set exactly one of secret_env and secret_file.',
    'Two webhooks are called "a".',
  ]);
  const folder = createRoot();
  put(join(folder, 'config.json'), '{"slots":0,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}');
  expect(() => readSettings(folder)).toThrow(/"e"\. .*And 2 more; list them all: parley config check$/s);
});

test('settings: retention is a number of days, of bytes, or both', async () => {
  const folder = createRoot();
  const read = (retention: unknown) => {
    put(join(folder, 'config.json'), JSON.stringify({ retention }));
    return readSettings(folder).retention;
  };
  for (const good of [{}, { ended_after_days: 0.5 }, { max_bytes: 1 }, { ended_after_days: 30, max_bytes: 5e9 }])
    expect(read(good)).toEqual(good);
  for (const bad of [{ ended_after_days: 0 }, { max_bytes: 0 }, { max_bytes: 1.5 }, { days: 1 }])
    expect(() => read(bad), JSON.stringify(bad)).toThrow(/retention/);
});

test('unreadable settings are reported', async () => {
  const folder = createRoot();
  mkdirSync(join(folder, 'config.json'));
  expect(() => readSettings(folder)).toThrow(/config\.json cannot be read/);
});
