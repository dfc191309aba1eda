// A file is made what is stored, whatever is the matter with it, and is left alone where it is right.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { repairFile } from '../../src/journal/repair-file.js';

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
  expect(readdirSync(dir)).toEqual(['file']);
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

test('several who do it at once, and see it at different times, leave it whole', async () => {
  const stored = [...STORED];
  const slow = async function* (): AsyncGenerator<Buffer> {
    for (const page of stored.slice()) {
      await new Promise((resolve) => setImmediate(resolve));
      yield Buffer.from(page);
    }
  };
  const all = Array.from({ length: 5 }, async (_, number) => {
    for (let turn = 0; turn < number; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    stored.push(`${number}\n`);
    await repairFile(path, slow);
  });
  await Promise.all(all);
  expect(readFileSync(path, 'utf8')).toBe(stored.join(''));
  expect(readdirSync(dir)).toEqual(['file']);
});

test('one that cannot be written leaves nothing beside it', async () => {
  await expect(
    repairFile(path, async function* () {
      yield Buffer.from('one');
      throw new Error('away');
    }),
  ).rejects.toThrow('away');
  expect(readdirSync(dir)).toEqual([]);
});
