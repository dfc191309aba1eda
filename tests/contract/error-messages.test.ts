// Every message template of the contract, read as a person would.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REQUEST_HINTS, REQUEST_MESSAGES, RUN_HINTS, RUN_MESSAGES } from '../../src/contract/error-codes.js';

interface Entry {
  readonly kind: string;
  readonly message?: string;
  readonly messages?: Readonly<Record<string, string>>;
}

const CODES = {
  ...(JSON.parse(readFileSync('contract/errors.json', 'utf8')) as Record<string, Entry | string>),
  ...(JSON.parse(readFileSync('contract/sticky.json', 'utf8')) as { errors: Record<string, Entry> }).errors,
};
const MESSAGES: Readonly<Record<string, string>> = { ...REQUEST_MESSAGES, ...RUN_MESSAGES };
const HINTS = { ...REQUEST_HINTS, ...RUN_HINTS };
// The words of an engine or a list of sentences, without words of ours.
const QUOTED = /^\{(?:reason|problem)\}$/;

test('every code of a request or a run has a message', () => {
  const without = Object.entries(CODES).filter(
    ([, entry]) =>
      typeof entry !== 'string' &&
      entry.kind !== 'diagnostic' &&
      entry.message === undefined &&
      Object.keys(entry.messages ?? {}).length === 0,
  );
  expect(without.map(([code]) => code)).toEqual([]);
});

test('every placeholder is a name that the types of the values know', () => {
  const malformed = Object.entries(MESSAGES).filter(([, text]) => /[{}]/.test(text.replaceAll(/\{[a-z_]+\}/g, '')));
  expect(malformed).toEqual([]);
});

test('no hint has a placeholder, and each belongs to a code or a message', () => {
  expect(Object.values(HINTS).filter((text) => /[{}]/.test(text))).toEqual([]);
  expect(Object.keys(HINTS).filter((name) => !(name in CODES) && !(name in MESSAGES))).toEqual([]);
});

test('no message or hint has a habit that plain English drops', () => {
  const texts = Object.entries({ ...MESSAGES, ...HINTS });
  const habits = /\bwhoever\b|\bis told\b|\bgoes on\b|\bshall\b|, too\b|\bis gone\b|\bis over\b/i;
  expect(texts.filter(([, text]) => habits.test(text))).toEqual([]);
});

test('every message is a sentence: it ends with a full stop, a command, or the reason after a colon', () => {
  const ends = /[.?]$|[.?] \(.*\)$|: .*[^.]$|[.?] \{\w+\}(?: \(.*\))?$|\b(?:parley [^.]*)$/;
  const odd = Object.entries(MESSAGES).filter(([, text]) => !QUOTED.test(text) && !ends.test(text));
  expect(odd).toEqual([]);
  expect(Object.entries(HINTS).filter(([, text]) => text !== '' && !/[.?]$/.test(text))).toEqual([]);
});
