// Who is known by what: a damaged file shuts out everybody but the operator, and stops nothing.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { operatorToken, readOperatorToken } from '../../src/service/operator-token.js';
import { addToken, removeToken, sessionFor, TokenBook, tokensIn } from '../../src/service/tokens.js';

const OPERATOR = { token: 'operator-token-0123', userName: 'ann' };
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-tokens-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a file of tokens that is damaged while it is used is told once, and only the operator is known then', () => {
  const problems: unknown[] = [];
  const book = new TokenBook(tokensIn(folder), OPERATOR, (error) => problems.push(error));
  const token = addToken(folder, 'bob', 'viewer', '2026-01-01T00:00:00.000Z');
  const bob = book.find(token);
  expect(bob).toMatchObject({ role: 'viewer' });
  writeFileSync(join(folder, 'tokens.json'), '[');
  expect([book.find(token), bob && book.knows(bob)]).toEqual([null, false]);
  expect(book.find(OPERATOR.token)).toMatchObject({ role: 'operator' });
  expect(problems).toHaveLength(1);
  writeFileSync(join(folder, 'tokens.json'), '[]');
  addToken(folder, 'cleo', 'viewer', '2026-01-01T00:00:00.000Z');
  expect(book.find(OPERATOR.token)).not.toBeNull();
  expect(problems).toHaveLength(1);
});

test('what a browser keeps is not the token, is not taken for one, and is gone with it', () => {
  const book = new TokenBook(tokensIn(folder), OPERATOR);
  const token = addToken(folder, 'bob', 'replier', '2026-01-01T00:00:00.000Z');
  const session = sessionFor(token);
  expect(session).not.toContain(token);
  expect(book.find(session)).toBeNull();
  expect(book.findSignedIn(token)).toBeNull();
  expect(book.findSignedIn(session)).toMatchObject({ actor: { name: 'bob' } });
  expect(book.findSignedIn(sessionFor(OPERATOR.token))).toMatchObject({ actor: { name: 'ann' } });
  removeToken(folder, 'bob');
  expect(book.findSignedIn(session)).toBeNull();
});

test.each(['', ' \n', 'short', 'with a space in it 123'])('a file %j is not taken for the token of the operator', (text) => {
  writeFileSync(join(folder, 'token'), text);
  expect(() => operatorToken(folder)).toThrow(/holds no token: delete it/);
  expect(() => readOperatorToken(folder)).toThrow(/holds no token/);
});

test('the token of the operator is made once', () => {
  expect(operatorToken(folder)).toBe(operatorToken(folder));
});
