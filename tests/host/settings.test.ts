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
  for (const connections of [1, 101, 2.5, '10', null]) expect(() => connectionsOf({ connections })).toThrow(/config\.json: .*connections/);
});

test('a setting that cannot be used is explained in our words, whatever it is', () => {
  const names = fc.constantFrom(...Object.keys(SETTINGS_SCHEMA.properties), 'slotz');
  fc.assert(fc.property(fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { minKeys: 1, maxKeys: 3 }), (settings) => {
    writeFileSync(join(root, 'config.json'), JSON.stringify(settings));
    try {
      readSettings(root);
    } catch (error) {
      const message = (error as Error).message.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
      expect(message).toMatch(/config\.json: /);
      expect(message).not.toMatch(LIBRARY_WORDS);
    }
  }), { numRuns: 300 });
});
