import { expect, test } from 'vitest';
import { SaidLines } from '../../src/fcmp/said-lines.js';

test('lines of messages and of pieces are known, also one that is not finished yet', () => {
  const said = new SaidLines();
  said.addMessage('one\n  two  ');
  said.addPiece('thr');
  said.addPiece('ee\nfo');
  expect(['one', 'two', 'three', 'fo'].map((line) => said.has(line))).toEqual([true, true, true, true]);
  said.addPiece('ur');
  expect([said.has('four'), said.has('fo')]).toEqual([true, false]);
});

test('beyond a limit nothing more is remembered, and a new turn starts anew', () => {
  const said = new SaidLines();
  said.addMessage('first');
  for (let count = 0; count < 40; count += 1) said.addMessage(`${count} ${'x'.repeat(32 * 1024)}`);
  said.addMessage('late');
  expect([said.has('first'), said.has('late')]).toEqual([true, true]);
  said.addMessage('y'.repeat(1024 * 1024));
  expect(said.has('y'.repeat(1024 * 1024))).toBe(false);
  said.clear();
  expect(said.has('first')).toBe(false);
});

test('text of any length and of any characters is remembered exactly', () => {
  const said = new SaidLines();
  const lines = Array.from({ length: 2000 }, (_, index) => `${index} é漢字😀 \ud800 x${'x'.repeat(index % 40)}`);
  for (const [index, line] of lines.entries()) {
    if (index % 3 === 0) said.addMessage(line);
    else for (const piece of [line.slice(0, index % 7), line.slice(index % 7), '\n']) said.addPiece(piece);
    // Looked up now and then, so that text is added before and after an index was built.
    if (index % 500 === 0) expect(said.has(line)).toBe(true);
  }
  expect(lines.filter((line) => !said.has(line))).toEqual([]);
  expect(said.has('1999')).toBe(false);
});
