// repairFile makes a file equal to the store, and does not touch a correct file.
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { repairFile, type ReadPage } from '../../src/journal/repair-file.js';

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

// Each page is one line of the journal, whatever it contains.
function reading(stored: readonly string[]): ReadPage {
  return async (afterSeq) => {
    const page = stored[afterSeq];
    return page === undefined ? null : { firstSeq: afterSeq + 1, lastSeq: afterSeq + 1, bytes: Buffer.from(page) };
  };
}

test.each([
  ['is missing', null],
  ['is empty', ''],
  ['is short', 'one\n'],
  ['ends in a torn line', 'one\ntwo\nthr'],
  ['has something behind its end', 'one\ntwo\nthree\nfo'],
  ['says something else', 'one\nTWO\nthree\n'],
])('a file that %s is repaired', async (_what, content) => {
  if (content !== null) writeFileSync(path, content);
  await repairFile(path, reading(STORED));
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n');
  expect(readdirSync(dir)).toEqual(['file']);
});

test('a file that is right is not written again', async () => {
  writeFileSync(path, 'one\ntwo\nthree\n');
  const { ino } = statSync(path);
  await repairFile(path, reading(STORED));
  expect(statSync(path).ino).toBe(ino);
});

test.each([1, 2, 3, 4, 5, 6, 7])('the file holds a line that is stored before read %i', async (number) => {
  const stored = [...STORED];
  let reads = 0;
  await repairFile(path, async (afterSeq) => {
    reads += 1;
    if (reads === number) stored.push('four\n');
    return reading(stored)(afterSeq);
  });
  expect(readFileSync(path, 'utf8')).toBe(stored.join(''));
});

test.each([3, 4, 5])('a file is not rewritten for lines that are appended after read %i', async (last) => {
  const stored = [...STORED];
  writeFileSync(path, stored.join(''));
  const { ino } = statSync(path);
  let reads = 0;
  await repairFile(path, async (afterSeq) => {
    const page = await reading(stored)(afterSeq);
    reads += 1;
    if (reads >= 3 && reads <= last) {
      stored.push(`${reads}\n`);
      appendFileSync(path, `${reads}\n`);
    }
    return page;
  });
  expect(statSync(path).ino).toBe(ino);
  expect(readFileSync(path, 'utf8')).toBe(stored.join(''));
});

test('several repairs at once that read different lines leave a complete file', async () => {
  const stored = [...STORED];
  const slow: ReadPage = async (afterSeq) => {
    await new Promise((resolve) => setImmediate(resolve));
    return reading(stored)(afterSeq);
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

test('a repair that fails leaves no file beside the old one', async () => {
  await expect(
    repairFile(path, async (afterSeq) => {
      if (afterSeq > 0) throw new Error('away');
      return reading(STORED)(0);
    }),
  ).rejects.toThrow('away');
  expect(readdirSync(dir)).toEqual([]);
});
