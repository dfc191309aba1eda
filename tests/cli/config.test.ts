// parley config: every setting with its value and origin, and changes to single settings.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { SETTINGS } from '../../src/settings/list-settings.js';
import { createIo } from '../support/io.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-config-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function config(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runCli(
    ['config', ...args, '--data', dir],
    createIo({ stdin: Readable.from([]), stdout, stderr }, {}),
  );
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
}

test('the list shows every setting once; as JSON, with default and description', async () => {
  expect(await config('set', 'slots', '3')).toEqual({
    code: 0,
    stdout: 'slots = 3\nA running server applies it within a few seconds.\n',
    stderr: '',
  });
  const { stdout } = await config();
  expect(stdout).toMatch(/^slots +3 +config\.json +at once$/m);
  expect(stdout).toMatch(/^queue_limit +10000 +default +at once$/m);
  const lines = (await config('--json')).stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(SETTINGS.length);
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual({
    type: 'setting',
    name: 'slots',
    value: 3,
    origin: 'config.json',
    default: null,
    when_empty: 'by the number of cores',
    applies: 'at once',
    description: 'How many turns run at the same time; default: by the number of processor cores.',
  });
});

test('get prints JSON; unset brings the default back; check accepts the file', async () => {
  await config('set', 'recovery.queued', 'requeue');
  expect((await config('get', 'recovery.queued')).stdout).toBe('"requeue"\n');
  await config('unset', 'recovery.queued');
  expect((await config('get', 'recovery.queued')).stdout).toBe('"fail"\n');
  expect((await config('check')).stdout).toBe(`${join(dir, 'config.json')} is valid.\n`);
});

test('the list does not show the addresses of webhooks', async () => {
  writeFileSync(
    join(dir, 'config.json'),
    '{"webhooks":[{"name":"chat","url":"https://example.org/SECRET","secret_env":"S"}]}',
  );
  for (const args of [[], ['--json']]) {
    const { stdout } = await config(...args);
    expect(stdout).toContain('["chat"]');
    expect(stdout).not.toContain('SECRET');
  }
});

test.each([
  [['get', 'slot'], 'There is no setting "slot". Did you mean "slots"?'],
  [['chek'], 'There is no command "parley config chek". The commands are list, get, set, unset and check.'],
  [['set', 'slots', 'many'], 'slots cannot be "many": it takes a whole number.'],
])('%j is refused with a sentence, and nothing is changed', async (args, message) => {
  writeFileSync(join(dir, 'config.json'), '{}\n');
  const { code, stdout, stderr } = await config(...args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(readFileSync(join(dir, 'config.json'), 'utf8')).toBe('{}\n');
});

test('the list names what applies while a setting has no value', async () => {
  const { stdout } = await config();
  expect(stdout).toMatch(/^slots +\(by the number of cores\) +default/m);
  expect(stdout).toMatch(/^defaults\.turn_timeout_sec +\(no limit\) +default/m);
  expect(stdout).not.toContain('(null)');
});

test('a setting that needs a restart is marked in the list, and set says so', async () => {
  expect((await config('set', 'max_streams', '10')).stdout).toBe('max_streams = 10\nRestart the server to apply it.\n');
  expect((await config()).stdout).toMatch(/^max_streams +10 +config\.json +after a restart$/m);
});

test('check reports all problems of the file, one a line', async () => {
  writeFileSync(join(dir, 'config.json'), '{"slot": 1, "slots": "many"}');
  expect(await config('check')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      `parley: ${join(dir, 'config.json')} has 2 problems:\n` +
      '  There is no setting "slot". Did you mean "slots"?\n' +
      '  slots cannot be "many": it takes a whole number.\n',
  });
});
