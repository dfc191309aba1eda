// The install of the engines, with an npm that only creates the files: two concurrent installs, after an interrupted
// one, over an old one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ENGINE_PACKAGES, ENGINE_PROGRAMS } from '../../scripts/install-engines.mjs';

const SCRIPT = fileURLToPath(new URL('../../scripts/install-engines.mjs', import.meta.url));
const REAL = fileURLToPath(new URL('../../.cache/engines/', import.meta.url));
// The files of an install, within its folder.
const FILES = {
  ...Object.fromEntries(
    Object.values(ENGINE_PACKAGES).map(({ name, version }) => [
      `node_modules/${name}/package.json`,
      JSON.stringify({ version }),
    ]),
  ),
  ...Object.fromEntries(
    Object.values(ENGINE_PROGRAMS).map((program) => [(program.at(-1) ?? '').slice(REAL.length), 'program']),
  ),
};
// Continues when as many installs as requested have reached this point, so that they really run concurrently.
const NPM = `const { mkdirSync, readdirSync, writeFileSync } = require('node:fs');
const { dirname, resolve } = require('node:path');
const { MEETING, TOGETHER } = process.env;
writeFileSync(MEETING + '/' + process.pid, '');
const go = () => {
  if (readdirSync(MEETING).length < Number(TOGETHER)) return setImmediate(go);
  for (const [path, text] of Object.entries(${JSON.stringify(FILES)})) {
    mkdirSync(dirname(resolve(path)), { recursive: true });
    writeFileSync(resolve(path), text);
  }
};
go();
`;

const WELL = { code: 0, stderr: '' };

let root: string;
let cache: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'parley-install-'));
  cache = join(root, '.cache');
  for (const folder of ['scripts', 'bin', 'meeting', '.cache']) mkdirSync(join(root, folder));
  copyFileSync(SCRIPT, join(root, 'scripts', 'install-engines.mjs'));
  writeFileSync(join(root, 'bin', 'npm.cjs'), NPM);
  writeFileSync(join(root, 'bin', 'npm'), `#!/bin/sh\nexec node ${root}/bin/npm.cjs\n`, { mode: 0o755 });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function install(together = 1): Promise<{ code: number | null; stderr: string }> {
  const env = {
    PATH: `${join(root, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
    MEETING: join(root, 'meeting'),
    TOGETHER: String(together),
  };
  const child = spawn(process.execPath, [join(root, 'scripts', 'install-engines.mjs')], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

function expectInstalled(): void {
  for (const [path, text] of Object.entries(FILES))
    expect(readFileSync(join(cache, 'engines', path), 'utf8')).toBe(text);
}

test('two or three installs at once do not interfere: all succeed, one stays, nothing else is left', async () => {
  for (const count of [2, 3]) {
    rmSync(join(cache, 'engines'), { recursive: true, force: true });
    for (const name of readdirSync(join(root, 'meeting'))) rmSync(join(root, 'meeting', name));
    expect(await Promise.all(Array.from({ length: count }, () => install(count)))).toEqual(
      Array.from({ length: count }, () => WELL),
    );
    expectInstalled();
    expect(readdirSync(cache)).toEqual(['engines']);
  }
});

test('two at once over an install of other versions replace it', async () => {
  for (const path of Object.keys(FILES)) {
    mkdirSync(dirname(join(cache, 'engines', path)), { recursive: true });
    writeFileSync(join(cache, 'engines', path), '{"version":"0.0.1"}');
  }
  expect(await Promise.all([install(2), install(2)])).toEqual([WELL, WELL]);
  expectInstalled();
  expect(readdirSync(cache)).toEqual(['engines']);
});

test('one that is whole is not repeated', async () => {
  expect(await install()).toEqual(WELL);
  expect(await install()).toEqual(WELL);
  expect(readdirSync(join(root, 'meeting'))).toHaveLength(1);
});

test('remains of an interrupted install are removed; those of a running one are not', async () => {
  const gone = spawn(process.execPath, ['-e', '']);
  await once(gone, 'exit');
  const [dead, old, busy, nobodys] = [
    `engines.partial-${gone.pid}-AbCdEf`,
    `engines.partial-${process.pid}-older1`,
    `engines.partial-${process.pid}-AbCdEf`,
    'engines.partial-AbCdEf',
  ].map((name) => join(cache, name)) as [string, string, string, string];
  for (const folder of [dead, old, busy, nobodys]) mkdirSync(folder);
  utimesSync(old, 0, 0);
  expect(await install()).toEqual(WELL);
  expect([dead, old, busy, nobodys].map((folder) => existsSync(folder))).toEqual([false, false, true, false]);
});

test('a failing npm is reported, and existing files stay', async () => {
  writeFileSync(join(root, 'bin', 'npm'), '#!/bin/sh\nexit 4\n', { mode: 0o755 });
  const { code, stderr } = await install();
  expect(code).toBe(1);
  expect(stderr).toMatch(/npm install .* failed/);
  expect(existsSync(join(cache, 'engines'))).toBe(false);
});
