// The packed package, installed without a network: unpacked into an empty folder, beside links to its dependencies.
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSite, parley, type Ended } from '../support/command.js';
import { startServer } from '../support/served-process.js';

const TREE = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, Readonly<Record<'types' | 'default', string>>>>;
}

let app: string;
let installed: string;
beforeAll(async () => {
  app = mkdtempSync(join(tmpdir(), 'parley-package-'));
  installed = join(app, 'node_modules', 'parley-agents');
  mkdirSync(installed, { recursive: true });
  await run('npm', ['pack', '--offline', '--ignore-scripts', '--pack-destination', app], { cwd: TREE });
  const archive = readdirSync(app).find((name) => name.endsWith('.tgz')) ?? '';
  await run('tar', ['-xzf', join(app, archive), '-C', installed, '--strip-components=1']);
  for (const name of Object.keys(readManifest().dependencies)) {
    const link = join(app, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(TREE, 'node_modules', name), link);
  }
});
afterAll(() => rmSync(app, { recursive: true, force: true }));

function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest;
}

test('the packed package prints help, serves, runs, checks schemas, shows the console and lists', async () => {
  const site = createSite();
  const program = join(installed, 'bin', 'parley.js');
  const call = (...args: string[]): Promise<Ended> => parley(site, args, { program });
  expect(await call('--help')).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('Usage: parley') });

  const server = await startServer(site, undefined, { program });
  const { run_id: runId } = await server.client.create({
    engine: 'rehearsal',
    prompt: '[[answer Hello]][[done "a text"]]',
    output_schema: { type: 'string' },
  });
  await expect.poll(async () => (await server.client.get(runId)).status).toBe('succeeded');
  expect(await server.client.verify(runId)).toMatchObject({ ok: true });
  const page = await fetch(server.url);
  expect(await page.text()).toContain('<script type="module"');
  server.child.kill('SIGTERM');
  expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
  expect(await call('run', 'rehearsal', '[[done 2]]')).toMatchObject({ code: 0 });
  const { stdout } = await call('ls', '--json');
  const rows = stdout.trim().split('\n');
  expect(rows.map((row) => JSON.parse(row) as unknown)).toEqual([
    expect.objectContaining({ run: expect.objectContaining({ status: 'succeeded' }) }),
    expect.objectContaining({ run: expect.objectContaining({ status: 'succeeded', run_id: runId }) }),
  ]);
});

test('the packed package carries the licences of the packages in it', () => {
  const licences = readFileSync(join(installed, 'dist/program/LICENSES.txt'), 'utf8');
  const names = ['fastify', 'zod', 'ajv', 'pino', 'preact', 'marked', 'dompurify'];
  for (const name of names) expect(licences).toMatch(new RegExp(`^${name} \\d`, 'm'));
});

test('the libraries of the packed package can be imported, and have types', async () => {
  const { exports } = readManifest();
  for (const { types } of Object.values(exports)) expect(existsSync(join(installed, types)), types).toBe(true);
  const script = join(app, 'use.mjs');
  writeFileSync(
    script,
    `import { createClient } from 'parley-agents/client';
     import * as appServer from 'parley-agents/codex-app-server';
     console.log(typeof createClient, Object.keys(appServer).length > 0);`,
  );
  expect(await run(process.execPath, [script])).toMatchObject({ stdout: 'function true\n' });
});
