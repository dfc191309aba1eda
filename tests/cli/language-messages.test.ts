// The Chinese templates of messages that the rest of the program creates: complete, with the values of the English
// ones, and without English sentences. The catalogues of the command line are checked for English sentences as well.
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { FINDINGS, finding, stateName } from '../../src/audit/findings.js';
import { failed, passed, viewCheck } from '../../src/audit/check.js';
import { checkLine } from '../../src/cli/conversation/tell.js';
import { ENGLISH } from '../../src/cli/language/en.js';
import { chooseLanguage, sayError, sayMessage } from '../../src/cli/language/language.js';
import { CHINESE_MESSAGES } from '../../src/cli/language/messages-zh-cn.js';
import { CHINESE } from '../../src/cli/language/zh-cn.js';
import { ENGINES } from '../../src/engines/registry.js';
import { POST_TEXTS } from '../../src/hooks/post.js';
import { DAMAGE_TEXTS, damageText } from '../../src/kernel/damage-texts.js';
import { createMessages, translate, verbatim } from '../../src/kernel/message.js';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { reasonMessage } from '../../src/messages/system-reason.js';
import { PROBE_TEXTS } from '../../src/machine/programs/probe-engine.js';
import { QUERY_TEXTS } from '../../src/machine/programs/query-program.js';
import { STATES } from '../../src/run/statechart.js';
import { SETTINGS } from '../../src/settings/list-settings.js';
import { AUDIT_PROBLEMS } from '../../src/store/audit.js';
import { findEnglish, hasChinese } from '../support/chinese.js';

const SOURCES = [FINDINGS, DAMAGE_TEXTS, AUDIT_PROBLEMS, PROBE_TEXTS, QUERY_TEXTS, POST_TEXTS];
const ENGLISH_TEMPLATES: readonly (readonly [string, string])[] = SOURCES.flatMap((source) => Object.entries(source));
const { templates } = CHINESE_MESSAGES;
const PLAIN = { width: 80, color: false } as unknown as Parameters<typeof checkLine>[1];

function namesIn(template: string): string[] {
  return Array.from(template.matchAll(/\{([a-z_]+)\}/g), ([, name = '']) => name).toSorted();
}

async function inChinese<T>(read: () => T): Promise<T> {
  await chooseLanguage([], { env: { PARLEY_LANG: 'zh' }, stderr: new PassThrough() });
  return read();
}

// The language is a value of the module, which other tests of this process share.
afterEach(() => chooseLanguage([], { env: {}, stderr: new PassThrough() }));

describe('the templates of messages', () => {
  test('have different keys, and each has a Chinese template', () => {
    const keys = ENGLISH_TEMPLATES.map(([key]) => key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.filter((key) => !Object.hasOwn(templates, key))).toEqual([]);
  });

  test('have no Chinese template without an English one', () => {
    const known = new Set([
      ...ENGLISH_TEMPLATES.map(([key]) => key),
      ...STATES.map((state) => `state.${state}`),
      ...ENGINES.flatMap(({ name }) => [`install.${name}`, `login.${name}`]),
    ]);
    expect(Object.keys(templates).filter((key) => !known.has(key))).toEqual([]);
  });

  test('have the same values in Chinese', () => {
    const wrong = ENGLISH_TEMPLATES.filter(
      ([key, template]) => namesIn(templates[key] ?? '').join() !== namesIn(template).join(),
    );
    expect(wrong.map(([key]) => key)).toEqual([]);
  });

  test('are Chinese sentences', () => {
    // A value alone, and two values in a row.
    const exceptions = new Set(['digest.passed', 'hashes.passed_lost', 'probe.failed']);
    const wrong = Object.entries(templates).filter(
      ([key, template]) => findEnglish(template) !== null || (!hasChinese(template) && !exceptions.has(key)),
    );
    expect(wrong).toEqual([]);
  });

  test('for an engine exist where its text is more than a command', () => {
    const texts = ENGINES.flatMap(({ name, probe, home }) => [
      [`install.${name}`, probe.install] as const,
      [`login.${name}`, home.howToLogIn] as const,
    ]);
    const missing = texts.filter(
      ([key, text]) => !/^(?:npm install -g \S+|opencode auth login|)$/.test(text) && !Object.hasOwn(templates, key),
    );
    expect(missing).toEqual([]);
  });
});

describe('the catalogues of the command line', () => {
  type Entry = string | ((...values: never[]) => string) | null;
  const flatten = (node: object, path = ''): [string, Entry][] =>
    Object.entries(node).flatMap(([key, value]: [string, Entry | object]) =>
      typeof value === 'object' && value !== null
        ? flatten(value, `${path}${key}.`)
        : [[`${path}${key}`, value] as [string, Entry]],
    );
  const textOf = (entry: Entry): string =>
    typeof entry === 'function'
      ? entry(...(Array.from({ length: entry.length }, () => '7') as never[]))
      : (entry ?? '');
  // Separators, names, and values with punctuation only.
  const EXCEPTIONS = new RegExp(
    '(?:\\.(?:and|names|next|between|tokenFigures)|^doctor\\.version|^help\\.(?:optionFacts|wrap|parserError)|' +
      'servingFacts\\.(?:api|webhooks))$',
  );

  test('have a Chinese text for each English one, and no English sentence in it', () => {
    const wrong = flatten(CHINESE)
      .filter(([key]) => !EXCEPTIONS.test(key))
      .map(([key, entry]) => [key, textOf(entry)] as const)
      .filter(([, text]) => findEnglish(text) !== null || (!hasChinese(text) && /[A-Za-z]/.test(text)));
    expect(wrong).toEqual([]);
  });

  test('name every meaning of a setting without a value', () => {
    const meanings = new Set(SETTINGS.map(({ whenEmpty }) => whenEmpty).filter((meaning) => meaning !== null));
    expect(Object.keys(ENGLISH.say.settingEmpty).toSorted()).toEqual([...meanings].toSorted());
    for (const [key, text] of Object.entries(ENGLISH.say.settingEmpty)) expect(text).toBe(key);
  });
});

describe('a message', () => {
  test('is shown in the language of the session, with the messages and lists in it', async () => {
    const problem = finding('question.state', { row: 'answered', state: 'pending' });
    const message = finding('rows.question', { question: 'int_1', problem });
    expect(sayMessage(message)).toBe('question int_1: its state is answered, but the events say pending');
    expect(await inChinese(() => sayMessage(message))).toBe('问题 int_1：状态为 answered，但按事件应为 pending');
    const lost = finding('hashes.lost', { turns: [2, 3] });
    expect(lost.text).toMatch(/^the logs of turn 2, 3 cannot be checked/);
    expect(sayMessage(lost)).toMatch(/^无法检查第 2、3 轮的日志/);
  });

  test('of a check is Chinese on the terminal and English for programs', async () => {
    const check = passed(
      'chart',
      finding('chart.now', { changes: finding('chart.change'), state: stateName('running') }),
    );
    expect(await inChinese(() => checkLine(check, PLAIN))).toBe('✓ chart        1 次状态变化，当前状态：运行中');
    expect(viewCheck(check)).toEqual({ name: 'chart', ok: true, finding: '1 state change, now running' });
    const other = failed('digest', finding('digest.differs', { found: 'a', stored: 'b' }));
    expect(JSON.stringify(viewCheck(other))).toBe(
      '{"name":"digest","ok":false,"finding":"the stored events have the digest a, but the row of the run says b"}',
    );
  });

  test('survives its way through another process as JSON', async () => {
    const copy = JSON.parse(JSON.stringify(finding('order.passed', { events: 4 }))) as ReturnType<typeof finding>;
    expect(await inChinese(() => sayMessage(copy))).toBe('4 个事件，无缺失');
  });

  test('without a template stays English', () => {
    const create = createMessages({ 'nobody.knows': '{thing} is unknown' });
    expect(translate(create('nobody.knows', { thing: 'it' }), CHINESE_MESSAGES)).toBe('it is unknown');
    expect(translate({ ...verbatim('as it is'), key: 'toString' }, CHINESE_MESSAGES)).toBe('as it is');
  });

  test('shows a value from damaged data, whatever its type is', () => {
    const create = createMessages({ 'order.passed': '{events} events without a gap' });
    const message = create('order.passed', { events: null as unknown as number });
    expect([message.text, translate(message, CHINESE_MESSAGES)]).toEqual([
      'null events without a gap',
      'null 个事件，无缺失',
    ]);
  });

  test('explains damaged data and refused calls in Chinese', async () => {
    const what = damageText('damage.of', { column: 'spec_json', owner: damageText('damage.run', { run: 'run_1' }) });
    const damage = new DamagedDataError(damageText('damage.form', { what }));
    expect(damage.message).toBe('spec_json of run run_1 does not have the form it was written in');
    expect(await inChinese(() => sayError(damage))).toBe('运行 run_1 的 spec_json 的格式与写入时不同');
    expect(sayError(new Error('of a library'))).toBe('of a library');
    expect(sayMessage(reasonMessage(Object.assign(new Error('x'), { code: 'ENOSPC' })))).toBe('磁盘已满');
  });
});
