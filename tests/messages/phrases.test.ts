// Phrases: their English text, their text in other languages, and phrases from outside.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  CLIENT_MESSAGES_ZH_CN,
  PHRASES_ZH_CN,
  REQUEST_MESSAGES_ZH_CN,
  RUN_MESSAGES_ZH_CN,
} from '../../src/contract/error-texts-zh-cn.js';
import { PHRASES } from '../../src/contract/phrases.js';
import { explainError } from '../../src/messages/explain-error.js';
import { findMessage, phraseOfError, toValues } from '../../src/messages/message-template.js';
import { inOne, phrase, renderTerm, sentencesOf, textOf } from '../../src/messages/phrase.js';
import { clientError } from '../../src/client/client-error.js';
import type { Values } from '../../src/kernel/fill-template.js';
import { describeLoss, readPlace } from '../../src/store/postgres/connection/lost-connection.js';
import { refusal } from '../../src/run/request-error.js';
import { runs } from '../support/runs.js';

const CHINESE = {
  texts: { ...CLIENT_MESSAGES_ZH_CN, ...RUN_MESSAGES_ZH_CN, ...REQUEST_MESSAGES_ZH_CN, ...PHRASES_ZH_CN },
  isDense: true,
};
const LANGUAGE = { catalogue: CHINESE, hints: {} };
const MISSING = phrase('missing', { name: '"a"' });
const REFUSED = phrase('cannot_be', { field: 'b', value: 1, because: phrase('takes', { form: phrase('text') }) });

test('every phrase is used somewhere in the source', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.startsWith('contract/'),
  );
  const source = files.map((name) => readFileSync(join('src', name), 'utf8')).join('\n');
  // Named by codes of the system, or by the languages themselves.
  const others = /^(?:E[A-Z]+|list_more|list_last|body|query|path|headers)$/;
  expect(Object.keys(PHRASES).filter((name) => !others.test(name) && !source.includes(`'${name}'`))).toEqual([]);
});

test('no phrase has a malformed placeholder', () => {
  expect(Object.values(PHRASES).filter((text) => /[{}]/.test(text.replaceAll(/\{[a-z_]+\}/g, '')))).toEqual([]);
});

test('a list is a choice, and sentences follow each other', () => {
  const choice = phrase('takes', { form: [phrase('text'), phrase('number'), 'null'] });
  expect(textOf(choice)).toBe('it takes a text, a number or null');
  expect(renderTerm(choice, CHINESE)).toBe('应为文本、数字或 null');
  expect(sentencesOf([MISSING, REFUSED])).toBe('"a" is missing. b cannot be 1: it takes a text.');
  expect(renderTerm(inOne([MISSING, REFUSED]), CHINESE)).toBe('缺少 "a"。b 不能是 1：应为文本。');
});

test('a value that looks like a template stays as it is', () => {
  expect(textOf(phrase('missing', { name: '{name}$&' }))).toBe('{name}$& is missing.');
});

test('an error carries the English text and the phrases of a value', () => {
  expect(toValues({ file: 'x', problem: [MISSING, REFUSED] })).toEqual({
    file: 'x',
    problem: '"a" is missing. b cannot be 1: it takes a text.',
    problems: [
      { value: 'problem', ...MISSING },
      { value: 'problem', ...REFUSED },
    ],
  });
  expect(toValues({ file: 'x' })).toEqual({ file: 'x' });
});

test('an error can be a part of another message', () => {
  const inner = refusal('INVALID_ARGUMENT.request', { problem: [MISSING, REFUSED] });
  const part = phraseOfError(inner);
  expect(textOf(part)).toBe(inner.message);
  expect(renderTerm(part, CHINESE)).toBe('缺少 "a"。b 不能是 1：应为文本。');
  expect(phraseOfError({ code: 'NEWER', message: 'Something newer.' })).toBe('Something newer.');
});

const terms = fc.letrec((tie) => ({
  term: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    fc.jsonValue({ maxDepth: 2 }),
    fc.record({
      rule: fc.oneof(fc.constantFrom(...Object.keys(PHRASES), 'toString', '__proto__'), fc.string()),
      values: fc.dictionary(fc.constantFrom('name', 'field', 'value', 'because', 'form', 'problem'), tie('term')),
    }),
    fc.array(tie('term'), { maxLength: 4 }),
  ),
})).term;

test('a phrase from outside has a text or none, and never fails', () => {
  fc.assert(
    fc.property(terms, (term) => {
      const text = renderTerm(term, CHINESE);
      expect(text === null || typeof text === 'string').toBe(true);
    }),
    { numRuns: runs(500) },
  );
});

test('an error from outside is shown, whatever its values are', () => {
  fc.assert(
    fc.property(terms, fc.jsonValue({ maxDepth: 2 }), (problems, problem) => {
      const error = { code: 'INVALID_ARGUMENT', message: 'A message.', values: { problem, problems } as never };
      expect(explainError(error, LANGUAGE).message).toBe('A message.');
      if (typeof problem === 'string')
        expect(typeof explainError({ ...error, message: problem }, LANGUAGE).message).toBe('string');
      expect(explainError({ ...error, values: problem as never }, LANGUAGE).message).toBe('A message.');
    }),
    { numRuns: runs(300) },
  );
});

test('a phrase that is nested or repeated too often has no text', () => {
  let deep = phrase('whole', { name: 'x' });
  for (let level = 0; level < 10_000; level += 1) deep = { rule: 'whole', values: { name: deep } };
  expect(renderTerm(deep, CHINESE)).toBeNull();
  expect(
    renderTerm(
      Array.from({ length: 10_000 }, () => 'x'),
      CHINESE,
    ),
  ).toBeNull();
});

test('the name of a message is found only if its text and values fit', () => {
  const { code, message, values } = refusal('RUN_NOT_FOUND.unknown', { run: 'run_1' });
  expect(findMessage({ code, message, values })).toBe('RUN_NOT_FOUND.unknown');
  expect(findMessage({ code, message, values: { run: 'run_2' } })).toBeNull();
  expect(findMessage({ code, message, values: { run: { toString: 1 } } as never })).toBeNull();
});

function inChinese({ code, message, values }: { code: string; message: string; values: Values }): string {
  return explainError({ code, message, values }, LANGUAGE).message;
}

test('a lost database is explained in both languages, without the password', () => {
  const place = readPlace('postgresql://ann:geheim@db:5432/parley');
  const refused = Object.assign(new Error('connect ECONNREFUSED geheim'), { code: 'ECONNREFUSED' });
  const lost = describeLoss(place, refused, { uncertain: true });
  expect(lost.message).toBe(
    'The database parley at db:5432 cannot be reached, and it is not known whether the change was stored: ' +
      'connect ECONNREFUSED …',
  );
  expect(inChinese(lost)).toBe('无法连接数据库 db:5432 上的 parley，也无法确定更改是否已保存：connect ECONNREFUSED …');
  const noPassword = describeLoss(place, new Error('client password must be a string'));
  expect(inChinese(noPassword)).toBe('无法连接数据库 db:5432 上的 parley：它需要密码，而地址中没有');
});

test('the errors of the client have values, and can be a part of an error of a command', () => {
  const lost = clientError('UNREACHABLE.no_connection_to', { url: 'http://x', reason: 'refused' });
  expect(lost).toMatchObject({
    code: 'UNREACHABLE',
    message: 'The server at http://x cannot be reached: refused.',
    values: { url: 'http://x', reason: 'refused' },
  });
  expect(inChinese(lost)).toBe('无法连接 http://x 上的服务器：refused。');
  const silent = refusal('DATA_DIR_IN_USE.silent', { problem: phraseOfError(lost) });
  expect(silent.message).toBe('The server at http://x cannot be reached: refused. Its process is still running.');
  expect(inChinese(silent)).toBe('无法连接 http://x 上的服务器：refused。它的进程仍在运行。');
  expect(clientError('INTERNAL.event_order', { seq: 3, last: 1 })).toMatchObject({ code: 'INTERNAL', status: 0 });
});
