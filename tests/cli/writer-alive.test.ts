// Whether the process in writer.json is still the same live process: not a reused pid, not a zombie.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive } from '../../src/cli/writer-alive.js';
import { readRow, readStartTime } from '../../src/process/process-table.js';

test('this process is; one with its number and another beginning is not', () => {
  expect(isAlive({ pid: process.pid, start_time: readStartTime(process.pid) })).toBe(true);
  expect(isAlive({ pid: process.pid, start_time: '1' })).toBe(false);
  expect(isAlive({ pid: process.pid })).toBe(false);
});

test('one that is dead and was not collected by its parent is not', async () => {
  // Its parent becomes another program, which does not know of it. It ends after that: a shell would reap it.
  const parent = spawn('sh', ['-c', 'cat <&3 >&3 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = (await once(createInterface(parent.stdout as Readable), 'line')) as [string];
  const pid = Number(line);
  await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8'), { timeout: 20_000 }).toBe('sleep\n');
  expect(isAlive({ pid, start_time: readStartTime(pid) })).toBe(true);
  (parent.stdio[3] as Writable).end();
  await expect.poll(() => readRow(pid), { timeout: 20_000 }).toBeNull();
  expect(readStartTime(pid)).not.toBe('');
  expect(isAlive({ pid, start_time: readStartTime(pid) })).toBe(false);
});
