// Settings: those of hosts that share a database, and what is said of settings that cannot be used.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSettings, SETTINGS_SCHEMA } from '../../src/host/settings.js';
import { LIBRARY_WORDS } from '../support/library-words.js';

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
  const names = fc.constantFrom(...Object.keys(SETTINGS_SCHEMA.properties), 'slotz');
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
    { numRuns: 300 },
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
    expect(() => readSettings(root)).toThrow(`there is no engine "${name}"; did you mean "${proposed}"?`);
  }
  write({ claude: { bin: '/x' } });
  expect(() => readSettings(root)).toThrow(/there is no engine "claude"[;.]? ?The engines are codex, /);
  write({ codex: { bin: '/x' }, 'codex-app-server': {} });
  expect(readSettings(root).engines).toEqual({ codex: { bin: '/x' }, 'codex-app-server': {} });
});

function defaultsOf(defaults: object): object {
  writeFileSync(join(root, 'config.json'), JSON.stringify({ defaults }));
  return readSettings(root).defaults;
}

test('limits of a turn have defaults, one by one, and null is for the turn only', () => {
  expect(defaultsOf({})).toEqual({ turn_timeout_sec: null, idle_timeout_sec: 1800, tool_timeout_sec: 14_400 });
  expect(defaultsOf({ idle_timeout_sec: 60 })).toEqual({
    turn_timeout_sec: null,
    idle_timeout_sec: 60,
    tool_timeout_sec: 14_400,
  });
  expect(defaultsOf({ turn_timeout_sec: null })).toMatchObject({ turn_timeout_sec: null });
  for (const wrong of [{ idle_timeout_sec: null }, { tool_timeout_sec: 0 }, { turn_timeout_sec: -1 }, { other: 1 }])
    expect(() => defaultsOf(wrong)).toThrow(/config\.json/);
});
