// A file is made what is stored, whatever is the matter with it, and is left alone where it is right.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { repairFile } from '../../src/orchestrator/repair-file.js';

const STORED = ['one\ntwo\n', 'three\n'];

let dir: string;
let path: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-repair-'));
  path = join(dir, 'file');
});
afterEach(() => {
  rmSync(dir, { recursive: true });
});

async function* pages(stored = STORED): AsyncGenerator<Buffer> {
  for (const page of stored) yield Buffer.from(page);
}

test.each([
  ['is missing', null],
  ['is empty', ''],
  ['is short', 'one\n'],
  ['ends in a torn line', 'one\ntwo\nthr'],
  ['has something behind its end', 'one\ntwo\nthree\nfo'],
  ['says something else', 'one\nTWO\nthree\n'],
])('a file that %s is made whole', async (_what, content) => {
  if (content !== null) writeFileSync(path, content);
  await repairFile(path, pages);
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n');
  expect(existsSync(`${path}.new`)).toBe(false);
});

test('a file that is right is not written again', async () => {
  writeFileSync(path, 'one\ntwo\nthree\n');
  const { ino } = statSync(path);
  await repairFile(path, pages);
  expect(statSync(path).ino).toBe(ino);
});

test('what is stored while a file is written is in it too', async () => {
  const stored = [...STORED];
  let asked = 0;
  await repairFile(path, () => {
    asked += 1;
    if (asked === 3) stored.push('four\n');
    return pages(stored.slice());
  });
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\nfour\n');
});
