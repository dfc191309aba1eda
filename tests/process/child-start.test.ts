import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChild } from '../../src/process/child.js';
import { readRow } from '../../src/process/process-table.js';
import { desk, Heard, marked, node, shell, specOf, start } from './desk.js';

const quiet = { onChunk: () => {} };

test('a child gets exactly the given arguments, directory and environment, and the mark', async () => {
  const heard = new Heard();
  const argv = node(
    'console.log(JSON.stringify([process.argv.slice(1), process.cwd(), process.env]))',
    '$HOME',
    '',
    'a b; exit 1',
    '"ä"',
  );
  const child = await start(specOf(argv, { env: { ONLY: 'this', PARLEY_TURN: 'of another' } }), heard);
  expect(await child.done).toMatchObject({ exit: { code: 0, signal: null }, endedByUs: null });
  expect(JSON.parse(Buffer.from(heard.text.stdout, 'latin1').toString('utf8'))).toEqual([
    ['$HOME', '', 'a b; exit 1', '"ä"'],
    desk.directory,
    { ONLY: 'this', PARLEY_TURN: desk.mark },
  ]);
});

test('a child leads a session of its own, and its pid and start time are those of the process table', async () => {
  const child = await start(specOf(shell('exec sleep 1000')));
  expect(readRow(child.pid)).toEqual({
    pid: child.pid,
    ppid: process.pid,
    session: child.pid,
    startTime: child.startTime,
  });
  expect(Number(child.startTime)).toBeGreaterThan(0);
  child.end('shutdown');
  await child.done;
});

test('the start time of a child that exits at once is known', async () => {
  const child = await start(specOf(['/bin/true']));
  expect(Number(child.startTime)).toBeGreaterThan(0);
  await child.done;
});

test('the exit code is reported unchanged', async () => {
  const child = await start(specOf(shell('exit 7')));
  expect((await child.done).exit).toEqual({ code: 7, signal: null });
});

test('the signal that ended a child is reported', async () => {
  const child = await start(specOf(shell('kill -SEGV $$')));
  expect(await child.done).toMatchObject({ exit: { code: null, signal: 'SIGSEGV' }, endedByUs: null });
});

test('a program that is not there is refused as not found, on PATH and by its path', async () => {
  for (const program of ['no-such-program', './no-such-program', '/no/such/program']) {
    const result = await startChild(specOf([program]), quiet);
    expect(result).toMatchObject({ started: false, reason: 'not_found', message: expect.stringContaining(program) });
  }
});

test('a script whose interpreter is missing is refused as not found', async () => {
  const script = join(desk.directory, 'script');
  await writeFile(script, '#!/no/such/interpreter\n', { mode: 0o755 });
  expect(await startChild(specOf([script]), quiet)).toMatchObject({ started: false, reason: 'not_found' });
});

test('a file that may not be executed, and a directory, are refused as not executable', async () => {
  const file = join(desk.directory, 'file');
  await writeFile(file, 'text');
  await chmod(file, 0o644);
  expect(await startChild(specOf([file]), quiet)).toMatchObject({
    started: false,
    reason: 'not_executable',
    message: expect.stringContaining(file),
  });
  expect(await startChild(specOf([desk.directory]), quiet)).toMatchObject({ started: false, reason: 'not_executable' });
});

test('a working directory that is missing, or is a file, is named as the reason', async () => {
  const missing = join(desk.directory, 'missing');
  const file = join(desk.directory, 'file');
  await writeFile(file, '');
  for (const cwd of [missing, file]) {
    expect(await startChild(specOf(['/bin/true'], { cwd }), quiet)).toMatchObject({
      started: false,
      reason: 'bad_cwd',
      message: expect.stringContaining(cwd),
    });
  }
});

test('any other refusal of the system is reported in its words', async () => {
  expect(await startChild(specOf(['/bin/true', 'x'.repeat(200_000)]), quiet)).toMatchObject({
    started: false,
    reason: 'other',
    message: expect.stringContaining('E2BIG'),
  });
  expect(await startChild(specOf(['/bin/true', 'nul\0']), quiet)).toMatchObject({ started: false, reason: 'other' });
});

test('a command without a program is a defect of ours', async () => {
  await expect(startChild(specOf([]), quiet)).rejects.toThrow('names a program');
});

test('a refused start leaves no open file behind, and can be tried again', async () => {
  await startChild(specOf(['warm-up']), quiet);
  const before = (await readdir('/proc/self/fd')).length;
  for (let count = 0; count < 20; count += 1) await startChild(specOf(['no-such-program']), quiet);
  expect((await readdir('/proc/self/fd')).length).toBeLessThan(before + 20);
  const child = await start(specOf(shell('echo now')));
  expect((await child.done).streams.stdout.bytes).toBe(4);
});

test('logs are made for the owner only', async () => {
  const child = await start(specOf(['/bin/true']));
  await child.done;
  for (const name of ['stdout.log', 'stderr.log'])
    expect((await stat(join(desk.directory, name))).mode & 0o777).toBe(0o600);
});

test.each(['stdout.log', 'stderr.log'])(
  'a %s with content is refused before anything is started: an attempt is never written twice',
  async (name) => {
    await writeFile(join(desk.directory, name), 'from before');
    await expect(startChild(specOf(shell('echo ran > ran')), quiet)).rejects.toThrow(
      `${name} already holds 11 bytes: an attempt is never written twice`,
    );
    expect(marked()).toEqual([]);
    expect(await readdir(desk.directory)).not.toContain('ran');
  },
);

test('a log that cannot be made is refused before anything is started', async () => {
  await mkdir(join(desk.directory, 'stderr.log'));
  await expect(startChild(specOf(['/bin/true']), quiet)).rejects.toThrow('is not a regular file');
});
