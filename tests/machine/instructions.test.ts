// The instructions of a workspace are read without following anything out of it.
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readInstructions } from '../../src/machine/homes/read-instructions.js';
import { createRoot } from '../support/orchestrated.js';

const NAME = 'CLAUDE.md';

function folder(): string {
  const cwd = join(realpathSync(createRoot()), 'work');
  mkdirSync(cwd);
  return cwd;
}

const read = (cwd: string) => readInstructions(cwd, NAME);

test('their text is passed as it is, imports included', async () => {
  const cwd = folder();
  expect(await read(cwd)).toBeNull();
  writeFileSync(join(cwd, NAME), '  \n');
  expect(await read(cwd)).toBeNull();
  writeFileSync(join(cwd, NAME), '# Rules\n@../secret.txt\n');
  expect(await read(cwd)).toEqual({
    text: 'Instructions of the workspace, from CLAUDE.md:\n\n# Rules\n@../secret.txt\n',
  });
});

test('a link to another file of the workspace is followed, a link out of it is not', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'AGENTS.md'), 'Inside.');
  symlinkSync('AGENTS.md', join(cwd, NAME));
  expect(await read(cwd)).toMatchObject({ text: expect.stringContaining('Inside.') });
  const other = folder();
  writeFileSync(join(other, '..', 'secret.txt'), 'Outside.');
  symlinkSync('../secret.txt', join(other, NAME));
  expect(await read(other)).toEqual({ problem: 'CLAUDE.md is a link that leads out of the folder' });
});

test('pipes, folders and large files are left out, with the reason', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, NAME), 'x'.repeat(64 * 1024 + 1));
  expect(await read(cwd)).toMatchObject({ problem: expect.stringContaining(NAME) });
  const pipes = folder();
  execFileSync('mkfifo', [join(pipes, NAME)]);
  expect(await read(pipes)).toMatchObject({ problem: expect.stringContaining(NAME) });
  const folders = folder();
  mkdirSync(join(folders, NAME));
  expect(await read(folders)).toMatchObject({ problem: expect.stringContaining(NAME) });
  const dangling = folder();
  symlinkSync('nowhere', join(dangling, NAME));
  expect(await read(dangling)).toBeNull();
});
