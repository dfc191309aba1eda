// parley.log: one JSON object per line, written before the call returns, without secrets; and never the end of a
// process.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { joinLogs, openLogFile } from '../../src/cli/open-log.js';
import { toFailureCallback } from '../../src/kernel/log.js';
import { createRoot } from '../support/orchestrated.js';

const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678) };
const linesOf = (folder: string): Record<string, unknown>[] =>
  readFileSync(join(folder, 'parley.log'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('a failure is one line with its time, its run and its stack, in a private file', () => {
  const root = createRoot();
  const log = openLogFile(root, { clock });
  log.error(new Error('first\nline'), { runId: 'run_1', message: 'a turn failed' });
  // Read without waiting: a process that ends here has written its last line.
  expect(linesOf(root)).toEqual([
    {
      level: 'error',
      ts: '2026-01-02T03:04:05.678Z',
      run_id: 'run_1',
      error: expect.stringMatching(/^Error: first\nline\n {4}at /),
      message: 'a turn failed',
    },
  ]);
  log.error('a text');
  expect(linesOf(root)[1]).toEqual({ level: 'error', ts: '2026-01-02T03:04:05.678Z', error: 'a text' });
  expect(statSync(join(root, 'parley.log')).mode & 0o777).toBe(0o600);
});

test('a line survives a process that is killed right after it', () => {
  const root = createRoot();
  const script = `
    import { openLogFile } from ${JSON.stringify(new URL('../../dist/cli/open-log.js', import.meta.url).href)};
    openLogFile(${JSON.stringify(root)}, { clock: { now: () => 0 } }).error(new Error('the last words'));
    process.kill(process.pid, 'SIGKILL');`;
  expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', script])).toThrow();
  expect(linesOf(root)).toMatchObject([{ error: expect.stringContaining('the last words') }]);
});

test('secrets are removed and control characters are shown by name', () => {
  const root = createRoot();
  openLogFile(root, { clock }).error(new Error('Bearer abcdefgh12345678 \u001b[31mred \u0007'));
  const text = readFileSync(join(root, 'parley.log'), 'utf8');
  expect(text).toContain('Bearer [redacted]');
  expect(text).not.toContain('abcdefgh12345678');
  expect(JSON.parse(text)).toMatchObject({ error: expect.not.stringMatching(/[\u0007\u001b]/) });
});

test('a link, a pipe or a folder in the place of the log is left alone, and the caller continues', () => {
  const root = createRoot();
  const path = join(root, 'parley.log');
  const log = openLogFile(root, { clock });
  writeFileSync(join(root, 'elsewhere'), 'as it was');
  symlinkSync(join(root, 'elsewhere'), path);
  log.error(new Error('through a link'));
  expect(readFileSync(join(root, 'elsewhere'), 'utf8')).toBe('as it was');
  rmSync(path);
  execFileSync('mkfifo', [path]);
  log.error(new Error('into a pipe'));
  rmSync(path);
  mkdirSync(path);
  log.error(new Error('into a folder'));
  rmSync(path, { recursive: true });
  log.error(new Error('into the file'));
  expect(linesOf(root)).toHaveLength(1);
});

test('a log that cannot be written is ignored, and a value that cannot be shown is logged as such', () => {
  const root = createRoot();
  expect(() => openLogFile(join(root, 'nowhere'), { clock }).error(new Error('x'))).not.toThrow();
  const log = openLogFile(root, { clock });
  log.error(Object.create(null));
  expect(linesOf(root)).toMatchObject([{ error: 'a value of type object that cannot be shown' }]);
});

test('a data directory behind a link has its log', () => {
  const root = createRoot();
  mkdirSync(join(root, 'real'));
  symlinkSync(join(root, 'real'), join(root, 'link'));
  openLogFile(join(root, 'link'), { clock }).error(new Error('x'));
  expect(linesOf(join(root, 'real'))).toHaveLength(1);
});

test('a server writes a failure to both logs, and an empty run id means no run', () => {
  const [file, server] = [{ error: vi.fn() }, { error: vi.fn() }];
  const report = toFailureCallback(joinLogs(file, server as never));
  const error = new Error('x');
  report('run_1', error);
  report('', error);
  expect(file.error.mock.calls).toEqual([
    [error, { runId: 'run_1' }],
    [error, {}],
  ]);
  expect(server.error.mock.calls).toEqual([
    [{ err: error, run_id: 'run_1' }, 'a turn or a queue poll failed'],
    [{ err: error, run_id: undefined }, 'a turn or a queue poll failed'],
  ]);
});
