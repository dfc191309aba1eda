// Commands in a folder full of files that tools read or run: none of them is executed, read without end or waited for.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createSite } from '../support/command.js';
import { callEverything, canPlant, KINDS, plant } from '../support/planted-repository.js';

test.each(KINDS.filter(canPlant))(
  'every command works in a repository full of planted %s, and runs none of them',
  async (kind) => {
    const site = createSite();
    const planted = plant(site, kind);
    const calls = await callEverything(site, planted, {});
    expect(planted.executed()).toEqual([]);
    for (const { stdout, stderr } of calls)
      expect(`${stdout}${stderr}`).not.toMatch(/internal error|planted|203\.0\.113/);
  },
  600_000,
);

test('no source file sets NODE_OPTIONS for Parley or for a process that it starts', () => {
  const root = new URL('../../src/', import.meta.url).pathname;
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.filter((name) => readFileSync(`${root}${name}`, 'utf8').includes('NODE_OPTIONS'))).toEqual([]);
});
