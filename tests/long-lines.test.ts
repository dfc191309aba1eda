// Hand-written lines have at most 120 columns. The formatter breaks code, but neither comments nor strings.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = new URL('..', import.meta.url).pathname;
const FOLDERS = ['src', 'console/src', 'tests', 'scripts', 'bench'];
// Made by npm run generate and by scripts/generate-app-server-types.mjs.
const GENERATED = /^src\/(?:contract\/|app-server\/protocol\.ts$)/;
const MAX_COLUMNS = 120;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name}`)
    .filter((name) => /\.(?:ts|tsx|mjs|mts|css)$/.test(name) && !GENERATED.test(name)),
);

test(`no hand-written line has more than ${MAX_COLUMNS} columns`, () => {
  const long = files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => ([...line].length > MAX_COLUMNS ? [`${file}:${index + 1}`] : [])),
  );
  expect(files.length).toBeGreaterThan(500);
  expect(long).toEqual([]);
});
