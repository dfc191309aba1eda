import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const KEEPS = 'enableCompileCache' in module;

let program: string;
beforeEach(() => {
  program = mkdtempSync(join(tmpdir(), 'parley-entry-'));
  cpSync(new URL('../../bin', import.meta.url), join(program, 'bin'), { recursive: true });
  writeFileSync(join(program, 'package.json'), '{ "type": "module" }');
});
afterEach(() => rmSync(program, { recursive: true, force: true }));

function start() {
  const { NODE_COMPILE_CACHE: _, NODE_DISABLE_COMPILE_CACHE: __, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(program, 'bin/parley.js')], {
    encoding: 'utf8',
    env,
  });
  return { status, stdout, stderr };
}

function buildCli(): void {
  mkdirSync(join(program, 'dist/program'), { recursive: true });
  writeFileSync(join(program, 'dist/program/main.js'), `console.log('started');`);
}

test('an unbuilt program prints how to build it', () => {
  expect(start()).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining('npm run build') });
});

test('compiled code is cached beside the program, for its owner only, where Node can', () => {
  buildCli();
  for (let time = 0; time < 2; time += 1) expect(start()).toEqual({ status: 0, stdout: 'started\n', stderr: '' });
  const kept = join(program, '.cache/compiled');
  expect(existsSync(kept)).toBe(KEEPS);
  if (!KEEPS) return;
  expect(statSync(kept).mode & 0o777).toBe(0o700);
  expect(readdirSync(kept, { recursive: true }).length).toBeGreaterThan(1);
});

test('a program in a place where nothing can be written starts as well', () => {
  buildCli();
  writeFileSync(join(program, '.cache'), '');
  expect(start()).toEqual({ status: 0, stdout: 'started\n', stderr: '' });
  rmSync(join(program, '.cache'));
  mkdirSync(join(program, '.cache'));
  writeFileSync(join(program, '.cache/compiled'), '');
  expect(start()).toEqual({ status: 0, stdout: 'started\n', stderr: '' });
});
