// Mistakes in arguments in our own words, each made on the real command line, in English and in Chinese.
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { explainUsage } from '../../src/cli/usage-error.js';
import { createIo } from '../support/io.js';

async function mistake(args: readonly string[], language: string) {
  const stderr = new PassThrough();
  const io = createIo(
    { stdin: new PassThrough(), stdout: new PassThrough(), stderr },
    { env: { PARLEY_LANG: language } },
  );
  expect(await runCli(args, io)).toBe(2);
  return String(stderr.read() ?? '').split('\n')[0];
}

test.each<[readonly string[], string, string]>([
  [['qqqqqq'], 'There is no command "qqqqqq".', '没有“qqqqqq”这个命令。'],
  [['runn'], 'There is no command "runn". Did you mean "run"?', '没有“runn”这个命令。你是想输入“run”吗？'],
  [['ls', '--qqqqqqqq'], 'There is no option --qqqqqqqq.', '没有选项 --qqqqqqqq。'],
  [['ls', '--limi'], 'There is no option --limi. Did you mean --limit?', '没有选项 --limi。你是想输入 --limit 吗？'],
  [['run', 'codex'], 'The argument "prompt" is missing.', '缺少参数“prompt”。'],
  [['ls', '--limit'], 'The option -n, --limit <count> needs a value.', '选项 -n, --limit <count> 需要一个值。'],
  [
    ['run', 'codex', 'x', '--scratch', '--cwd', '/'],
    '--scratch cannot be used with -C, --cwd <dir>.',
    '--scratch 不能与 -C, --cwd <dir> 同时使用。',
  ],
  [['run', 'codex', 'a', 'b'], '"run" takes 2 arguments, not 3.', '“run”需要 2 个参数，而不是 3 个。'],
  [['cancel', 'a', 'b'], '"cancel" takes 1 argument, not 2.', '“cancel”需要 1 个参数，而不是 2 个。'],
  [['ls', 'a'], '"ls" takes no arguments, not 1.', '“ls”需要 0 个参数，而不是 1 个。'],
  [
    ['run', 'codex', 'x', '--permission', 'all'],
    '-p, --permission <level> cannot be "all": it takes read-only, workspace-write, full.',
    '-p, --permission <level> 不能是“all”：可选值为 read-only, workspace-write, full。',
  ],
  [
    ['ls', '--limit', 'x'],
    '-n, --limit <count> cannot be "x". Give a whole number.',
    '-n, --limit <count> 不能是“x”。请给出整数。',
  ],
])('%j is explained', async (args, english, chinese) => {
  expect(await mistake(args, 'en')).toBe(`parley: ${english}`);
  expect(await mistake(args, 'zh')).toBe(`parley: ${chinese}`);
});

test('with --json a mistake has its code, message and values', async () => {
  const stderr = new PassThrough();
  const io = createIo({ stdin: new PassThrough(), stdout: new PassThrough(), stderr });
  expect(await runCli(['ls', '--limi', '--json'], io)).toBe(2);
  expect(JSON.parse(String(stderr.read()))).toEqual({
    error: {
      code: 'INVALID_ARGUMENT',
      message: 'There is no option --limi. Did you mean --limit?',
      values: { name: '--limi', nearest: '--limit' },
    },
  });
});

test('a mistake with other words is left to the parser', () => {
  expect(explainUsage('error: something new')).toBeNull();
});
