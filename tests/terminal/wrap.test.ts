import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { safeText } from '../../src/terminal/safe-text.js';
import { Wrapper, wrapText } from '../../src/terminal/wrap.js';
import { CONTROL, cut, expectFits, hostile, RUNS } from './fixtures.js';
const letters = (text: string) => text.replace(/\s/g, '');

test.each([
  ['words', 'the quick brown fox', 10, 'the quick\nbrown fox'],
  ['a word that ends at the edge', 'the quick fox', 9, 'the quick\nfox'],
  ['a word longer than a line', 'see https://example.org/abc now', 10, 'see\nhttps://ex\nample.org/\nabc now'],
  ['Chinese between characters', '这是一个很长的句子没有空格', 10, '这是一个很\n长的句子没\n有空格'],
  ['no mark at the start of a line', '一二三四五。六', 10, '一二三四\n五。六'],
  ['no bracket at the end of a line', '一二三四「五」', 10, '一二三四\n「五」'],
  ['Chinese beside Latin', '使用git提交', 8, '使用git\n提交'],
  ['emoji by visible characters', '👩‍💻👩‍💻👩‍💻', 4, '👩‍💻👩‍💻\n👩‍💻'],
  ['marks with their letters', 'e\u0301e\u0301e\u0301 e\u0301', 3, 'e\u0301e\u0301e\u0301\ne\u0301'],
  ['lines as they are', 'a\n\nb\nc', 10, 'a\n\nb\nc'],
  ['one blank line of many', '\n\na\n\n\n\nb\n\n', 10, 'a\n\nb'],
  ['indented code', 'if:\n    x\n\ty', 10, 'if:\n    x\n    y'],
  ['no blanks at the ends', 'a   \nb  ', 10, 'a\nb'],
])('wraps %s', (_, text, width, wrapped) => {
  expect(wrapText(text, width)).toBe(wrapped);
});

test('splits clusters that are wider than any character', () => {
  expectFits(wrapText(`ｶ${'ﾞ'.repeat(50)}`, 10), 10);
});

test('puts a margin before each line that has something', () => {
  expect(wrapText('one two\n\nthree', 7, { first: '> ', rest: '  ' })).toBe('> one\n  two\n\n  three');
});

test('writes a word as soon as its end is known, and Chinese a character later', () => {
  const wrapper = new Wrapper(20);
  expect(wrapper.push('Hel')).toBe('');
  expect(wrapper.push('lo wor')).toBe('Hello');
  expect(wrapper.push('ld. ')).toBe(' world.');
  expect(wrapper.push('你好')).toBe('');
  expect(wrapper.push('吗')).toBe(' 你');
  expect(wrapper.end()).toBe('好吗');
});

test('writes the same however the text is cut, never too wide, and loses no letter', () => {
  fc.assert(
    fc.property(hostile(), fc.array(fc.nat()), fc.constantFrom(6, 9, 20, 80, Infinity), (text, places, width) => {
      const wrapper = new Wrapper(width, { first: '> ', rest: '  ' });
      const streamed =
        cut(text, places)
          .map((piece) => wrapper.push(piece))
          .join('') + wrapper.end();
      expect(streamed).toBe(wrapText(text, width, { first: '> ', rest: '  ' }));
      expectFits(streamed, width);
      expect(streamed).not.toMatch(CONTROL);
      expect(streamed).not.toMatch(/\n\n\n| $/m);
      expect(letters(wrapText(text, width))).toBe(letters(safeText(text)));
    }),
    RUNS,
  );
});

test('shows a partial word after a pause, and continues after it', () => {
  const wrapper = new Wrapper(13);
  expect(wrapper.push('all 42')).toBe('all');
  expect(wrapper.pause()).toBe(' 42');
  expect(wrapper.pause()).toBe('');
  expect(wrapper.push('000 and more')).toBe('000 and');
  expect(wrapper.pause()).toBe('\nmore');
  expect(wrapper.push('over, indeed so')).toBe('over,\nindeed');
  expect(wrapper.end()).toBe(' so');
});

test('with pauses anywhere is never too wide either, and loses no letter', () => {
  fc.assert(
    fc.property(hostile(), fc.array(fc.nat()), fc.constantFrom(6, 9, 20), (text, places, width) => {
      const wrapper = new Wrapper(width);
      const streamed =
        cut(text, places)
          .map((piece) => wrapper.push(piece) + wrapper.pause())
          .join('') + wrapper.end();
      expectFits(streamed, width);
      expect(letters(streamed)).toBe(letters(safeText(text)));
    }),
    RUNS,
  );
});

test('keeps nothing of a word without an end but a line of it', () => {
  const wrapper = new Wrapper(80);
  let written = 0;
  for (let round = 0; round < 20_000; round += 1) written += wrapper.push('x'.repeat(50)).length;
  expect(written).toBeGreaterThan(1_000_000);
});
