// The calls that a failing disk refuses are all the steps of replacing a file; a failure of any of them leaves the old
// file whole, and the next attempt succeeds.
import { readFileSync, readdirSync } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { replaceFile, replaceFileMeanwhile } from '../../src/files/replace-file.js';
import { breakDisk } from '../support/failing-disk.js';
import { createRoot } from '../support/orchestrated.js';

test.each([
  ['at once', replaceFile],
  ['meanwhile', replaceFileMeanwhile],
] as const)('a file that is replaced %s is the old one, whichever call was refused', async (_when, replace) => {
  const folder = createRoot();
  const path = join(folder, 'file');
  const refused: string[] = [];
  replaceFile(path, 'old');
  for (let at = 1; ; at += 1) {
    const disk = await breakDisk(folder, { at, times: 1, how: 'half' });
    try {
      await replace(path, 'new and longer');
      break;
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' });
      expect(readFileSync(path, 'utf8'), String(error)).toBe('old');
      refused.push(...disk.refused);
    } finally {
      disk.restore();
    }
  }
  expect(readFileSync(path, 'utf8')).toBe('new and longer');
  expect(readdirSync(folder)).toEqual(['file']);
  expect(new Set(refused)).toEqual(new Set(['mkdir', 'open', 'write', 'rename']));
});

test('the calls that answer later are refused as well, and only within the folder', async () => {
  const [folder, elsewhere] = [createRoot(), createRoot()];
  const disk = await breakDisk(folder, { at: 1, times: Infinity, how: 'EIO' });
  try {
    await expect(mkdir(join(folder, 'a'))).rejects.toMatchObject({ code: 'EIO', syscall: 'mkdir' });
    await expect(open(join(folder, 'b'), 'a')).rejects.toMatchObject({ code: 'EIO', syscall: 'open' });
    await expect(rename(join(folder, 'c'), join(folder, 'd'))).rejects.toMatchObject({
      code: 'EIO',
      syscall: 'rename',
    });
    await mkdir(join(elsewhere, 'a'));
    disk.heal();
    await mkdir(join(folder, 'a'));
  } finally {
    disk.restore();
  }
  expect(disk.refused).toEqual(['mkdir', 'open', 'rename']);
});
