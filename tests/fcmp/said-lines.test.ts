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
