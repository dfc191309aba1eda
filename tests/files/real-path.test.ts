// Resolves a path, even if a part of it is missing.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isWithin, nearestRealPath } from '../../src/files/real-path.js';

let dir: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'parley-path-')));
  mkdirSync(join(dir, 'allowed'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('missing parts are added to the existing path', () => {
  expect(nearestRealPath(join(dir, 'allowed', 'a', 'b'))).toBe(join(dir, 'allowed', 'a', 'b'));
});

test.each(['missing', 'there'])('a link leads to its target, whether that is %s or not', (name) => {
  mkdirSync(join(dir, 'there'));
  for (const [link, target] of [
    ['absolute', join(dir, name)],
    ['relative', join('..', name)],
    ['chain', 'absolute'],
  ] as const) {
    symlinkSync(target, join(dir, 'allowed', link));
    const real = nearestRealPath(join(dir, 'allowed', link, 'below'));
    expect(real, link).toBe(join(dir, name, 'below'));
    expect(isWithin(real, join(dir, 'allowed'))).toBe(false);
  }
});

test('links in a circle end', () => {
  symlinkSync('two', join(dir, 'one'));
  symlinkSync('one', join(dir, 'two'));
  expect(nearestRealPath(join(dir, 'one'))).toMatch(/\/(?:one|two)$/);
});
