// Only src/files/read-file.ts reads files and only src/files/list-folder.ts lists folders: a link, a pipe or a device
// in a folder that an agent or a repository can write must not hang the process or fill its memory. Each exception has
// its reason.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const src = new URL('../../src/', import.meta.url).pathname;

const READS = new Set([
  'readFile',
  'readFileSync',
  'createReadStream',
  'open',
  'openSync',
  'openAsBlob',
  'readSync',
  'readv',
  'readvSync',
  'cp',
  'cpSync',
  'copyFile',
  'copyFileSync',
  'readdir',
  'readdirSync',
  'opendir',
  'opendirSync',
  'glob',
  'globSync',
  'watch',
  'watchFile',
  'default',
  'promises',
]);

const ALLOWED: Readonly<Record<string, { readonly names: readonly string[]; readonly reason: string }>> = {
  'files/read-file.ts': { names: ['open', 'openSync', 'readSync'], reason: 'the way itself' },
  'files/list-folder.ts': { names: ['opendir'], reason: 'the way itself' },
  'files/copy-tree.ts': {
    names: ['copyFileSync', 'opendirSync'],
    reason: "copies the user's own settings, regular files within bounds",
  },
  'files/boot-id.ts': { names: ['readFileSync'], reason: 'a file of the kernel, which says that it is empty' },
  'files/replace-file.ts': {
    names: ['open', 'openSync'],
    reason: 'makes new files (wx refuses existing ones) and syncs folders',
  },
  'machine/homes/file-lock.ts': { names: ['openSync'], reason: 'makes a new file: wx refuses existing ones' },
  'settings/edit-settings.ts': { names: ['openSync'], reason: 'makes a new file: wx refuses existing ones' },
  'store/sqlite/data-dir.ts': { names: ['openSync'], reason: 'makes a new file: wx refuses existing ones' },
  'process/proc-rows.ts': { names: ['openSync', 'readSync', 'readdirSync'], reason: 'the process table of the kernel' },
  'service/limits/limit-connections.ts': { names: ['readFileSync'], reason: 'limits of this process, from the kernel' },
  'service/routes/console.ts': {
    names: ['readFileSync', 'readdirSync'],
    reason: 'the pages that are part of the program, read once at the start',
  },
  'cli/version.ts': { names: ['readFileSync'], reason: "the program's own package.json" },
  'cli/conversation/run.ts': {
    names: ['readFile'],
    reason: 'a file that the person names on the command line, which may be a pipe',
  },
  'cli/reading/parse.ts': {
    names: ['createReadStream'],
    reason: 'a file that the person names on the command line, which may be a pipe',
  },
};

function readsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8');
  const imports = [...text.matchAll(/import\s+(?!type\b)([^;]*?)\s+from\s+'(?:node:)?fs(?:\/promises)?'/g)].map(
    ([, names = '']) => names,
  );
  const dynamic = /(?:import|require)\s*\(\s*'(?:node:)?fs/.test(text) ? ['default'] : [];
  return [
    ...dynamic,
    ...imports.flatMap((names) => {
      if (!names.startsWith('{')) return ['default'];
      return names
        .slice(1, -1)
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '' && !name.startsWith('type '))
        .map((name) => name.split(' as ')[0] ?? '');
    }),
  ].filter((name) => READS.has(name));
}

test('no file of the source reads or lists in another way than by the helper, but for those with a reason', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') || name.endsWith('.mjs'),
  );
  const uses = Object.fromEntries(
    files.map((file) => [file, readsOf(file).toSorted()] as const).filter(([, names]) => names.length > 0),
  );
  expect(uses).toEqual(
    Object.fromEntries(Object.entries(ALLOWED).map(([file, { names }]) => [file, [...names].toSorted()])),
  );
});
