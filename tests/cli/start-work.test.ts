// A command whose worker cannot be started reports it in one sentence, and has started nothing.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { createIo } from '../support/io.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'parley-work-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function run(node: string, ...flags: string[]): Promise<{ code: number; stderr: string }> {
  const stderr = new PassThrough();
  const stdout = new PassThrough().resume();
  const io = createIo({ stdin: Readable.from([]), stdout, stderr }, { cwd: root });
  const code = await runCli(['run', 'rehearsal', 'hi', '--data', join(root, 'data'), ...flags], {
    ...io,
    machine: { ...io.machine, node },
  });
  return { code, stderr: String(stderr.read() ?? '') };
}

test('there is no program at the place of Node', async () => {
  const { code, stderr } = await run('/nowhere/node');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'parley: The worker process cannot be started: spawn /nowhere/node ENOENT\n',
  });
  expect(JSON.parse((await run('/nowhere/node', '--json')).stderr)).toMatchObject({
    error: { code: 'WORKER_NOT_STARTED' },
  });
  expect(readdirSync(root)).not.toContain('data');
});

test('the process ends before it has said anything', async () => {
  const program = join(root, 'node');
  writeFileSync(program, '#!/bin/sh\nexit 9\n', { mode: 0o755 });
  const { code, stderr } = await run(program);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'parley: The worker process ended before it began. See parley.log in the data directory.\n',
  });
});
