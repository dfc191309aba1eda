// Settings: their bounds, the messages for values that cannot be used, and the JSON Schema for editors.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import config from '../../contract/config.schema.json' with { type: 'json' };
import { readSettings } from '../../src/settings/read-settings.js';
import { settingsSchema } from '../../src/settings/settings.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { runs } from '../support/runs.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'parley-settings-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function connectionsOf(cluster: object): number {
  writeFileSync(join(root, 'config.json'), JSON.stringify({ cluster }));
  return readSettings(root).cluster.connections;
}

test('a host keeps ten connections at most, or as many as are set, from two to a hundred', () => {
  expect(readSettings(root).cluster.connections).toBe(10);
  expect(connectionsOf({ lease_sec: 5 })).toBe(10);
  for (const connections of [2, 100]) expect(connectionsOf({ connections })).toBe(connections);
  for (const connections of [1, 101, 2.5, '10', null])
    expect(() => connectionsOf({ connections })).toThrow(/config\.json: .*connections/);
});

test('a setting that cannot be used is explained in our words, whatever it is', () => {
  const names = fc.constantFrom(...Object.keys(settingsSchema.shape), 'slotz');
  fc.assert(
    fc.property(fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { minKeys: 1, maxKeys: 3 }), (settings) => {
      writeFileSync(join(root, 'config.json'), JSON.stringify(settings));
      try {
        readSettings(root);
      } catch (error) {
        const message = (error as Error).message.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
        expect(message).toMatch(/config\.json: /);
        expect(message).not.toMatch(LIBRARY_WORDS);
      }
    }),
    { numRuns: runs(300) },
  );
});

test('an engine that does not exist is refused, and the name that was probably meant is proposed', () => {
  const write = (engines: object): void => writeFileSync(join(root, 'config.json'), JSON.stringify({ engines }));
  for (const [name, proposed] of [
    ['codx', 'codex'],
    ['Codex', 'codex'],
    ['opencod', 'opencode'],
    ['gemni', 'gemini'],
  ] as const) {
    write({ [name]: { bin: '/x' } });
    expect(() => readSettings(root)).toThrow(`there is no engine "${name}". Did you mean "${proposed}"?`);
  }
  write({ other: { bin: '/x' } });
  expect(() => readSettings(root)).toThrow(/there is no engine "other"\. The engines are claude, codex, /);
  write({ codex: { bin: '/x' }, 'codex-app-server': {} });
  expect(readSettings(root).engines).toEqual({ codex: { bin: '/x' }, 'codex-app-server': {} });
});

function defaultsOf(defaults: object): object {
  writeFileSync(join(root, 'config.json'), JSON.stringify({ defaults }));
  return readSettings(root).defaults;
}

test('limits of a turn have defaults, one by one, and null is for the turn only', () => {
  expect(defaultsOf({})).toEqual({
    mode: null,
    permission: 'workspace-write',
    model: {},
    turn_timeout_sec: null,
    idle_timeout_sec: 1800,
    tool_timeout_sec: 14_400,
  });
  expect(defaultsOf({ idle_timeout_sec: 60 })).toMatchObject({
    turn_timeout_sec: null,
    idle_timeout_sec: 60,
    tool_timeout_sec: 14_400,
  });
  expect(defaultsOf({ turn_timeout_sec: null })).toMatchObject({ turn_timeout_sec: null });
  for (const wrong of [{ idle_timeout_sec: null }, { tool_timeout_sec: 0 }, { turn_timeout_sec: -1 }, { other: 1 }])
    expect(() => defaultsOf(wrong)).toThrow(/config\.json/);
});

test('new runs have a default mode, permission and a model for each engine', () => {
  const defaults = { mode: 'interactive', permission: 'read-only', model: { codex: 'gpt-5', opencode: 'a/b' } };
  expect(defaultsOf(defaults)).toMatchObject(defaults);
  for (const wrong of [{ mode: 'ask' }, { permission: 'all' }, { model: 'gpt-5' }, { model: { codex: null } }])
    expect(() => defaultsOf(wrong)).toThrow(/config\.json: defaults\./);
  expect(() => defaultsOf({ model: { gpt: 'x' } })).toThrow('defaults.model: there is no engine "gpt"');
});

test('null is refused where a setting is left out for its default', () => {
  for (const name of ['slots', 'workspace_roots', 'public_url', 'max_streams_per_token']) {
    writeFileSync(join(root, 'config.json'), JSON.stringify({ [name]: null }));
    expect(() => readSettings(root)).toThrow(`${name} cannot be null`);
  }
  writeFileSync(join(root, 'config.json'), JSON.stringify({ cluster: { url: null } }));
  expect(() => readSettings(root)).toThrow('cluster.url cannot be null');
});

test('an event that a webhook names twice is refused', () => {
  const hook = { name: 'chat', url: 'https://example.org', secret_env: 'CHAT_SECRET', events: ['failed', 'failed'] };
  writeFileSync(join(root, 'config.json'), JSON.stringify({ webhooks: [hook] }));
  expect(() => readSettings(root)).toThrow('webhooks[0].events cannot be a list of 2 items: it takes each event once.');
});

describe('contract/config.schema.json', () => {
  const validate = new Ajv2020({ strict: false }).compile(config);

  test('describes every setting', () => {
    expect(Object.keys(config.properties)).toEqual(Object.keys(settingsSchema.shape));
    for (const [name, setting] of Object.entries<object>(config.properties))
      expect('description' in setting, name).toBe(true);
  });

  test('accepts exactly the files that Parley accepts, except for rules between fields of a webhook', () => {
    const numbers = fc.constantFrom(-1, 0, 0.5, 1, 2, 100, 101, 3600, 3601, 2_000_001, 3_153_600_001);
    const texts = fc.constantFrom('', 'x', '/x', 'https://example.org', 'https://example.org/a', '10.0.0.0/8', 'PATH');
    const words = fc.constantFrom('fail', 'requeue', 'retry', 'host', 'shared', 'failed', 'silent', 'running');
    const leaf = fc.oneof(numbers, texts, words, fc.boolean(), fc.constant(null));
    const members = fc.constantFrom('bin', 'queued', 'running', 'files', 'url', 'sticky', 'max_bytes', 'lease_sec');
    const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(members, leaf, { maxKeys: 2 }));
    const names = Object.keys(settingsSchema.shape).filter((name) => name !== 'webhooks');
    // Files with one setting are accepted most often: half of the files have only one.
    const filesWith = (maxKeys: number) =>
      fc.dictionary(fc.constantFrom(...names, 'other'), value, { minKeys: 1, maxKeys });
    const files = fc.oneof(filesWith(1), filesWith(3));
    let accepted = 0;
    fc.assert(
      fc.property(files, (file) => {
        writeFileSync(join(root, 'config.json'), JSON.stringify(file));
        let isUsable = true;
        try {
          readSettings(root);
        } catch {
          isUsable = false;
        }
        accepted += isUsable ? 1 : 0;
        expect(validate(file), JSON.stringify(file)).toBe(isUsable);
      }),
      { numRuns: 1000 },
    );
    expect(accepted).toBeGreaterThan(20);
  });
});
