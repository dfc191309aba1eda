// Settings for hosts that share a database.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSettings } from '../../src/host/settings.js';

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
