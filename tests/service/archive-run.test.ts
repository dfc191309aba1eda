// An archive names what it could not contain.
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeFolder } from '../../src/journal/remove-folder.js';
import { listForArchive } from '../../src/service/evidence/archive-run.js';

// The longest path that the system opens, with its final NUL.
const MAX_PATH = 4096;
const STEP = 'd'.repeat(200);
const LIST = 'run_1.left-out.txt';

let folder = '';
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'parley-archive-')));
});
afterEach(() => removeFolder(folder));

async function archived(): Promise<Map<string, string>> {
  const entries = new Map<string, string>();
  for await (const { path, content } of listForArchive(folder, join(folder, 'home'), 'run_1'))
    entries.set(String(path), await text(content));
  return entries;
}

// Step by step, as an agent can: no call names the whole path. Nobody, not even root, can open it by that path.
function plantUnreadable(): { readonly file: string; readonly folder: string } {
  const before = process.cwd();
  process.chdir(folder);
  try {
    const steps: string[] = [];
    while (folder.length + (steps.length + 1) * (STEP.length + 1) < MAX_PATH - 10) {
      mkdirSync(STEP);
      process.chdir(STEP);
      steps.push(STEP);
    }
    const names = { file: 'f'.repeat(250), folder: 'g'.repeat(250) };
    writeFileSync(names.file, 'x');
    mkdirSync(names.folder);
    return { file: [...steps, names.file].join('/'), folder: [...steps, names.folder].join('/') };
  } finally {
    process.chdir(before);
  }
}

test('files and folders that cannot be read are named at the end of the archive', async () => {
  writeFileSync(join(folder, 'a'), 'A');
  const unreadable = plantUnreadable();
  const entries = await archived();
  expect([...entries.keys()]).toEqual(['run_1/a', LIST]);
  const list = entries.get(LIST) ?? '';
  expect(
    list
      .split('\n')
      .slice(1, -1)
      .map((line) => JSON.parse(line) as string),
  ).toEqual([unreadable.file, `${unreadable.folder}/`]);
});

test('an archive that contains everything has no such list', async () => {
  writeFileSync(join(folder, 'a'), 'A');
  expect([...(await archived())]).toEqual([['run_1/a', 'A']]);
});
