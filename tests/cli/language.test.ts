// The catalogues of the command line: the same keys and placeholders in each language, help that fits the screen, and
// errors in the language of PARLEY_LANG.
import { PassThrough } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/build-program.js';
import { ENGLISH } from '../../src/cli/language/en.js';
import { chooseLanguage, explainRefusal, texts } from '../../src/cli/language/language.js';
import { CHINESE } from '../../src/cli/language/zh-cn.js';
import { runCli } from '../../src/cli/program.js';
import { CLIENT_MESSAGES } from '../../src/contract/client-messages.js';
import { REQUEST_HINTS, REQUEST_MESSAGES, RUN_HINTS, RUN_MESSAGES } from '../../src/contract/error-codes.js';
import {
  CLIENT_MESSAGES_ZH_CN,
  PHRASES_ZH_CN,
  REQUEST_HINTS_ZH_CN,
  REQUEST_MESSAGES_ZH_CN,
  RUN_HINTS_ZH_CN,
  RUN_MESSAGES_ZH_CN,
} from '../../src/contract/error-texts-zh-cn.js';
import { PHRASES } from '../../src/contract/phrases.js';
import { phrase } from '../../src/messages/phrase.js';
import { asResumeFailure } from '../../src/run/judge-completion.js';
import { RequestError, refusal } from '../../src/run/request-error.js';
import { runError, type RunError } from '../../src/run/run-error.js';
import { renderFailed } from '../../src/terminal/event-text.js';
import { textWidth } from '../../src/terminal/text-width.js';
import { createIo } from '../support/io.js';

type Entry = string | ((...values: never[]) => string) | null;

function flatten(node: object, path = ''): [string, Entry][] {
  return Object.entries(node).flatMap(([key, value]: [string, Entry | object]) =>
    typeof value === 'object' && value !== null
      ? flatten(value, `${path}${key}.`)
      : [[`${path}${key}`, value] as [string, Entry]],
  );
}

function keysOf(node: object): string[] {
  return flatten(node).map(([key]) => key);
}

// The numbers of the placeholders that appear in the text.
function placeholdersOf(entry: Entry | undefined): number[] {
  if (typeof entry !== 'function') return [];
  const values = Array.from({ length: entry.length }, (_, index) => 7001 + index);
  const text = entry(...(values as never[]));
  return values.filter((value) => text.includes(String(value)));
}

function arityOf(entry: Entry | undefined): number {
  return typeof entry === 'function' ? entry.length : 0;
}

function namesIn(template: string): string[] {
  return Array.from(template.matchAll(/\{([a-z_]+)\}/g), ([, name = '']) => name);
}

async function capture(args: readonly string[], language?: string) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const env = language === undefined ? {} : { PARLEY_LANG: language };
  const code = await runCli(args, createIo({ stdin: new PassThrough(), stdout, stderr }, { env }));
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
}

// The language is a value of the module, which other tests of this process share.
afterEach(() => chooseLanguage([], { env: {}, stderr: new PassThrough() }));

test('the Chinese catalogue has every key of the English one and no other', () => {
  expect(keysOf(CHINESE).toSorted()).toEqual(keysOf(ENGLISH).toSorted());
});

test.each([
  ['English', ENGLISH],
  ['Chinese', CHINESE],
])('each %s text shows every value that it gets', (_name, catalogue) => {
  const english = new Map(flatten(ENGLISH));
  const incomplete = flatten(catalogue)
    .filter(([key]) => key !== 'help.wrap')
    .filter(([key, entry]) => placeholdersOf(entry).length !== arityOf(english.get(key)))
    .map(([key]) => key);
  expect(incomplete).toEqual([]);
});

const ENGLISH_TEXTS = { ...CLIENT_MESSAGES, ...RUN_MESSAGES, ...REQUEST_MESSAGES, ...PHRASES };
const CHINESE_TEXTS = { ...CLIENT_MESSAGES_ZH_CN, ...RUN_MESSAGES_ZH_CN, ...REQUEST_MESSAGES_ZH_CN, ...PHRASES_ZH_CN };

test.each([
  ['messages of refused calls', REQUEST_MESSAGES, REQUEST_MESSAGES_ZH_CN],
  ['hints of refused calls', REQUEST_HINTS, REQUEST_HINTS_ZH_CN],
  ['messages of failed runs', RUN_MESSAGES, RUN_MESSAGES_ZH_CN],
  ['hints of failed runs', RUN_HINTS, RUN_HINTS_ZH_CN],
  ['phrases', PHRASES, PHRASES_ZH_CN],
])('the %s have the same keys in Chinese and in English', (_what, english, chinese) => {
  expect(Object.keys(chinese).toSorted()).toEqual(Object.keys(english).toSorted());
});

test('each message of a client is also there in Chinese', () => {
  const chinese = { ...CLIENT_MESSAGES_ZH_CN, ...RUN_MESSAGES_ZH_CN };
  expect(Object.keys(CLIENT_MESSAGES).filter((name) => !Object.hasOwn(chinese, name))).toEqual([]);
});

test('each Chinese message and phrase has the values of the English one, and no other', () => {
  const wrong = Object.entries(CHINESE_TEXTS).flatMap(([key, template]) => {
    const english = namesIn(ENGLISH_TEXTS[key as keyof typeof ENGLISH_TEXTS]).toSorted();
    const chinese = [...new Set(namesIn(template))].toSorted();
    return JSON.stringify(chinese) === JSON.stringify([...new Set(english)]) ? [] : [key];
  });
  expect(wrong).toEqual([]);
});

function everyHelp(): string[] {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const io = createIo({ stdin: new PassThrough(), stdout, stderr });
  const program = buildProgram(io, { printErrors: true, act: async () => {} });
  const commands = program.commands.flatMap((command) => [command, ...command.commands]);
  for (const command of [program, ...commands]) command.outputHelp();
  return String(stdout.read()).split('\n');
}

test.each(['en', 'zh'])('every help in %s fits on 80 columns', async (language) => {
  await chooseLanguage([], { env: { PARLEY_LANG: language }, stderr: new PassThrough() });
  const lines = everyHelp();
  expect(lines.length).toBeGreaterThan(300);
  // Usage lines are not wrapped.
  const wide = lines.filter((line) => textWidth(line) > 80 && !/^(?:Usage:|用法：)/.test(line));
  expect(wide).toEqual([]);
});

test('Chinese help has Chinese headings, descriptions and options', async () => {
  const { code, stdout } = await capture(['run', '--help'], 'zh');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^用法： parley run/);
  expect(stdout).toContain('启动');
  expect(stdout).toContain('可选值：');
  expect(stdout).not.toMatch(/Options:|Arguments:|display help/);
});

test.each(['zh', 'zh-CN', 'ZH-cn'])(
  'PARLEY_LANG=%s chooses Chinese, also for errors and their hints',
  async (language) => {
    const { code, stderr } = await capture(['run', 'nobody', 'x'], language);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^parley: 没有引擎“nobody”。可用的引擎：.*\n {2}parley doctor 列出已安装的引擎。\n$/);
  },
);

test('mistakes in arguments are explained in Chinese', async () => {
  expect((await capture(['nope'], 'zh')).stderr).toContain('parley: 没有“nope”这个命令。');
  expect((await capture(['ls', '--limit', 'x'], 'zh')).stderr).toContain('请给出整数。');
  expect((await capture(['run', 'codex'], 'zh')).stderr).toContain('parley: 缺少参数“prompt”。');
});

test('an unknown language is reported once, and English is used', async () => {
  const { stdout, stderr } = await capture(['--help'], 'tlh');
  expect(stderr).toBe('parley: PARLEY_LANG is "tlh"; use en, zh or zh-CN. Continuing in English.\n');
  expect(stdout).toContain('Usage: parley');
});

test('--json output stays English', async () => {
  const { stderr } = await capture(['run', 'nobody', 'x', '--json'], 'zh');
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: 'UNKNOWN_ENGINE', message: expect.stringMatching(/^There is no engine/) as string },
  });
  expect((await capture(['run', 'nobody', 'x', '--json'], 'tlh')).stderr).not.toContain('PARLEY_LANG');
});

test('an error that arrives without the name of its message is translated by its text and values', async () => {
  await chooseLanguage([], { env: { PARLEY_LANG: 'zh' }, stderr: new PassThrough() });
  const { code, message, values, hint } = refusal('RUN_NOT_FOUND.unknown', { run: 'run_1' });
  expect(explainRefusal(new RequestError(code, message, { values, hint })).message).toBe('没有运行 run_1。');
  expect(explainRefusal(new RequestError('RUN_NOT_FOUND', 'Something else.')).message).toBe('Something else.');
  expect(texts()).toBe(CHINESE);
});

const PLAIN = { colour: false, width: 100 };

function failed(error: RunError): string {
  return renderFailed({ error: JSON.parse(JSON.stringify(error)) as typeof error as never }, PLAIN);
}

test('the error of a failed run is shown in Chinese from its code and values', async () => {
  await chooseLanguage([], { env: { PARLEY_LANG: 'zh' }, stderr: new PassThrough() });
  expect(
    failed(runError('ENGINE_IDLE_TIMEOUT.limit', { time: phrase('minutes_count', { count: 5 }), more: 1200 })),
  ).toBe(
    '✗ 失败：ENGINE_IDLE_TIMEOUT\n  5 分钟没有输出，已停止（idle_timeout_sec）。放宽限制：-o idle_timeout_sec=1200。',
  );
  const folder = runError('WORKING_FOLDER_UNUSABLE.other', { path: '/x', reason: phrase('EACCES') });
  expect(failed(asResumeFailure(folder))).toContain('无法继续该会话。智能体无法在 /x 中工作：没有权限。');
  expect(failed(runError('ENGINE_TURN_FAILED.reported', { reason: 'model overloaded' }))).toContain('model overloaded');
  const { hint } = explainRefusal(runError('AUTO_MODE_CANNOT_ASK'));
  expect(hint).toMatch(/^该运行无人值守。/);
});

test.each<[string, object]>([
  ['without values', { code: 'DISK_FULL', message: 'The disk was full.' }],
  ['of an earlier version', { code: 'OUTPUT_INVALID', message: 'It does not fit: x', values: { problems: 'x' } }],
  ['of an unknown code', { code: 'NEWER', message: 'Something newer.', values: { a: 1 } }],
])('an error %s is shown as it is stored', async (_what, error) => {
  await chooseLanguage([], { env: { PARLEY_LANG: 'zh' }, stderr: new PassThrough() });
  const { message } = error as RunError;
  expect(failed(error as RunError)).toContain(message);
});
