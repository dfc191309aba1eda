// Reading in folders that others can write: regular files at exactly that path, bounded, without waiting.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
  mkdtempSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hasEntries, listFolder } from '../../src/files/list-folder.js';
import {
  openFile,
  openToAppend,
  openToAppendSync,
  readBytes,
  readPieces,
  readText,
  readTextSync,
  SMALL_FILE,
  UnsafeFileError,
} from '../../src/files/read-file.js';
import { growing, linkFolder, plant, PLANTS } from '../support/planted-files.js';

let dir: string;
let path: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'parley-read-')));
  path = join(dir, 'folder', 'file');
  mkdirSync(join(dir, 'folder'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe.each(PLANTS)('%s', (what, put) => {
  test('is refused by every reader', async () => {
    await plant(path, put);
    await expect(readText(path, SMALL_FILE)).rejects.toThrow(UnsafeFileError);
    expect(() => readTextSync(path, SMALL_FILE)).toThrow(UnsafeFileError);
    if (!what.includes('sparse')) await expect(openFile(path)).rejects.toThrow(UnsafeFileError);
  });

  test('is refused for appending, and nothing is written through it', async () => {
    await plant(path, put);
    if (what.includes('sparse')) return;
    await expect(openToAppend(path)).rejects.toThrow(UnsafeFileError);
    expect(() => openToAppendSync(path)).toThrow(UnsafeFileError);
    if (what === 'a link to a file') expect(readFileSync(path, 'utf8')).toBe('elsewhere');
  });

  test('is followed only to a regular file where links are allowed', async () => {
    await plant(path, put);
    const follow = { ...SMALL_FILE, links: 'follow' } as const;
    if (what === 'a link to a file') {
      expect([await readText(path, follow), readTextSync(path, follow)]).toEqual(['elsewhere', 'elsewhere']);
      return;
    }
    await expect(readText(path, follow)).rejects.toThrow(UnsafeFileError);
    expect(() => readTextSync(path, follow)).toThrow(UnsafeFileError);
  });
});

test('a link on the way to a file is not followed', async () => {
  writeFileSync(path, 'x');
  expect([await readText(path, SMALL_FILE), readTextSync(path, SMALL_FILE)]).toEqual(['x', 'x']);
  linkFolder(path);
  expect(readFileSync(path, 'utf8')).toBe('x');
  await expect(readText(path, SMALL_FILE)).rejects.toThrow(UnsafeFileError);
  expect(() => readTextSync(path, SMALL_FILE)).toThrow(UnsafeFileError);
  await expect(openToAppend(path)).rejects.toThrow(UnsafeFileError);
});

test('nothing is nothing, also below a file', async () => {
  expect([await readText(path, SMALL_FILE), readTextSync(path, SMALL_FILE)]).toEqual([null, null]);
  writeFileSync(path, '');
  expect([await readText(join(path, 'below'), SMALL_FILE), readTextSync(join(path, 'below'), SMALL_FILE)]).toEqual([
    null,
    null,
  ]);
});

test('a file that grows while it is read is read as long as it was', async () => {
  const stop = growing(path);
  try {
    const bytes = await readBytes(path, SMALL_FILE);
    expect(bytes?.length).toBeGreaterThanOrEqual(1000);
    const file = await openFile(path);
    const { size } = (await file?.stat()) ?? { size: 0 };
    let read = 0;
    if (file) for await (const piece of readPieces(file, 0, size)) read += piece.length;
    await file?.close();
    expect(read).toBe(size);
  } finally {
    await stop();
  }
});

test('a file that another process replaces all the time can be read', async () => {
  writeFileSync(path, 'content');
  const script =
    'const { renameSync, writeFileSync } = require("node:fs"); for (;;) { writeFileSync(process.argv[1] + ".new", ' +
    '"content"); renameSync(process.argv[1] + ".new", process.argv[1]); }';
  const writer = spawn(process.execPath, ['-e', script, path], { stdio: 'ignore' });
  try {
    await expect.poll(() => statSync(path).ino).not.toBe(statSync(path).ino);
    for (let round = 0; round < 2000; round += 1) {
      expect(readTextSync(path, SMALL_FILE)).toBe('content');
      expect(await readText(path, SMALL_FILE)).toBe('content');
    }
  } finally {
    writer.kill('SIGKILL');
    await once(writer, 'exit');
  }
});

test('a larger file than allowed is refused with both numbers', async () => {
  writeFileSync(path, 'x'.repeat(11));
  await expect(readText(path, { maxBytes: 10 })).rejects.toThrow('has 11 bytes; at most 10 are read');
});

test('appended text is at the end, and a new file is for its owner only', async () => {
  const file = await openToAppend(path);
  await file.writeFile('one ');
  await file.close();
  appendFileSync(openToAppendSync(path), 'two');
  expect(readFileSync(path, 'utf8')).toBe('one two');
  expect(() => openToAppendSync(join(dir, 'folder', 'other'), { creates: false })).toThrow('ENOENT');
});

test('a folder is listed in chunks with names as bytes; checking whether it is empty reads only a part', async () => {
  const folder = join(dir, 'many');
  mkdirSync(folder);
  expect(await hasEntries(folder)).toBe(false);
  const odd = Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.from([0xe9])]);
  writeFileSync(odd, '');
  for (let index = 0; index < 25; index += 1) writeFileSync(join(folder, `f${index}`), '');
  symlinkSync('/dev/zero', join(folder, 'zero'));
  mkdirSync(join(folder, 'sub'));
  expect(await hasEntries(folder)).toBe(true);
  expect(await hasEntries(join(dir, 'none'))).toBe(false);
  const pieces = [];
  for await (const piece of listFolder(folder, 10)) pieces.push(piece);
  expect(pieces.map((piece) => piece.length)).toEqual([10, 10, 8]);
  const entries = pieces.flat();
  expect(entries.find(({ name }) => name.equals(Buffer.from([0x63, 0x61, 0x66, 0xe9])))).toMatchObject({
    kind: 'file',
  });
  expect(entries.filter(({ kind }) => kind === 'folder')).toHaveLength(1);
  expect(entries.filter(({ kind }) => kind === 'other')).toHaveLength(1);
});
