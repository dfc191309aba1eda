// The terminal that the tests of the commands run on is a real one.
import { expect, test } from 'vitest';
import { openPty, type PtyOptions } from '../support/pty.js';

const program = (code: string, options?: PtyOptions) => openPty([process.execPath, '-e', code], options);
const STAY = 'setInterval(() => {}, 1000);';

test('a program sees a terminal of the given size', async () => {
  const pty = program(
    'console.log([process.stdin.isTTY, process.stdout.isTTY, process.stderr.isTTY, process.stdout.columns, ' +
      'process.stdout.rows].join())',
    { cols: 33, rows: 7 },
  );
  await pty.waitFor('true,true,true,33,7');
  expect(await pty.exit).toBe(0);
});

test('the exit code is that of the program, also for a signal', async () => {
  expect(await program('process.exit(7)').exit).toBe(7);
  expect(await program('process.kill(process.pid, "SIGTERM")').exit).toBe(143);
});

test('arguments, environment and working directory arrive as given', async () => {
  const pty = openPty(
    [
      process.execPath,
      '-e',
      'console.log(JSON.stringify([process.argv.slice(1), process.env.GREETING, process.cwd()]))',
      "it's",
      '$HOME "x"',
    ],
    { env: { GREETING: 'hello' }, cwd: '/', cols: 200 },
  );
  await pty.exit;
  expect(JSON.parse(pty.output())).toEqual([["it's", '$HOME "x"'], 'hello', '/']);
});

test('typed text arrives and is echoed; a pattern matches only new output', async () => {
  const pty = program(
    'process.stdout.write("> "); require("readline").createInterface({ input: process.stdin }).on("line", (line) ' +
      '=> process.stdout.write("<" + line + ">\\n> "))',
  );
  await pty.waitFor('> ');
  pty.write('one\n');
  await pty.waitFor('<one>');
  await pty.waitFor('> ');
  pty.write('two\n');
  await pty.waitFor(/<two>\s+> $/);
  expect(pty.output()).toBe('> one\r\n<one>\r\n> two\r\n<two>\r\n> ');
  pty.write('\u0004');
  expect(await pty.exit).toBe(0);
});

test('Ctrl-C arrives as SIGINT', async () => {
  const pty = program(
    `process.on("SIGINT", () => { console.log("interrupted"); process.exit(5); }); console.log("ready"); ${STAY}`,
  );
  await pty.waitFor('ready');
  pty.interrupt();
  await pty.waitFor('interrupted');
  expect(await pty.exit).toBe(5);
});

test('UTF-8 passes whole in both directions', async () => {
  const text = '漢字 🚀 e\u0301 '.repeat(2000);
  const pty = program(
    'process.stdin.once("data", (data) => { console.log("<" + String(data).trim() + ">"); ' +
      `console.log(${JSON.stringify(text)} + "end"); process.exit(); }); console.log("ready")`,
  );
  await pty.waitFor('ready');
  pty.write('你好👩‍💻\n');
  await pty.waitFor('<你好👩‍💻>');
  await pty.exit;
  expect(pty.output()).toContain(`${text}end`);
});

test('a wait fails with the output so far when the program exits or the time expires', async () => {
  const ended = program('console.log("only this")');
  await expect(ended.waitFor('something else')).rejects.toThrow(/it ended before something else came[^]*only this/);
  const silent = program(`console.log("only this"); ${STAY}`, { limitMs: 1500 });
  await expect(silent.waitFor(/something\s+else/)).rejects.toThrow(/1500 ms were over[^]*only this/);
});

test('killing ends the program even if it ignores the end of its terminal', async () => {
  const pty = program(
    'for (const name of ["SIGHUP", "SIGTERM", "SIGINT"]) process.on(name, () => {}); console.log("pid " + ' +
      `process.pid + "."); ${STAY}`,
  );
  await pty.waitFor(/pid \d+\./);
  const pid = Number(/pid (\d+)/.exec(pty.output())?.[1]);
  pty.kill();
  expect(await pty.exit).toBe(137);
  expect(isAlive(pid)).toBe(false);
});

test('a missing command is reported by its exit code', async () => {
  const pty = openPty(['/nowhere/at-all']);
  expect(await pty.exit).toBe(127);
  expect(pty.output()).toContain('not found');
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
