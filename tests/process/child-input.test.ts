import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { Heard, node, shell, specOf, start } from './desk.js';

test('without stdin there is nothing to read, at once', async () => {
  const heard = new Heard();
  const child = await start(specOf(shell('cat; echo end')), heard);
  await child.done;
  expect(heard.text.stdout).toBe('end\n');
});

test('stdin is given as it is and then closed', async () => {
  const heard = new Heard();
  const child = await start(specOf(['cat'], { stdin: 'zwölf\0 漢字\r\n' }), heard);
  await child.done;
  expect(Buffer.from(heard.text.stdout, 'latin1').toString('utf8')).toBe('zwölf\0 漢字\r\n');
});

test('an empty stdin is closed too', async () => {
  const child = await start(specOf(['cat'], { stdin: '' }));
  expect((await child.done).exit.code).toBe(0);
});

test('a stdin far larger than a pipe arrives whole, while the child prints as much', async () => {
  const stdin = '0123456789abcdef'.repeat(512 * 1024);
  const child = await start(specOf(['cat'], { stdin }));
  const { streams } = await child.done;
  expect(streams.stdout).toEqual({ bytes: stdin.length, sha256: createHash('sha256').update(stdin).digest('hex') });
});

test('a child that never reads a large stdin ends as it likes', async () => {
  const child = await start(specOf(shell('echo not interested; exit 3'), { stdin: 'x'.repeat(4_000_000) }));
  expect(await child.done).toMatchObject({ exit: { code: 3, signal: null }, streams: { stdout: { bytes: 15 } } });
});

test('a child that closes a large stdin and works on is not disturbed', async () => {
  const heard = new Heard();
  const script =
    'process.stdin.once("data", () => { process.stdin.destroy(); require("fs").closeSync(0); setImmediate(() => ' +
    'console.log("worked on")) })';
  const child = await start(specOf(node(script), { stdin: 'x'.repeat(4_000_000) }), heard);
  expect((await child.done).exit.code).toBe(0);
  expect(heard.text.stdout).toBe('worked on\n');
});

test('a child that never reads its stdin can be ended', async () => {
  const heard = new Heard();
  const child = await start(specOf(shell('echo ready; exec sleep 1000'), { stdin: 'x'.repeat(4_000_000) }), heard);
  await heard.says('ready');
  child.end('canceled');
  expect(await child.done).toMatchObject({ exit: { code: null, signal: 'SIGTERM' }, endedByUs: 'canceled' });
});
