// The identity behind each token: a damaged file locks out everybody but the operator, and expiry and rotation take
// effect at once.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  checkStrength,
  estimateBits,
  fixedOperator,
  operatorIn,
  operatorToken,
  readOperatorToken,
  rotateOperatorToken,
} from '../../src/service/access/operator-token.js';
import { TokenBook } from '../../src/service/access/token-book.js';
import { addToken, hashToken, newToken, tokensIn } from '../../src/service/access/tokens.js';

const OPERATOR = 'operator-token-0123';
const MADE = '2026-01-01T00:00:00.000Z';
let folder = '';
let now = Date.parse(MADE);
const clock = { now: () => now };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-tokens-'));
  now = Date.parse(MADE);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openBook = (onProblem: (error: unknown) => void = () => {}) =>
  new TokenBook({ source: tokensIn(folder), operator: fixedOperator(OPERATOR), userName: 'ann', clock, onProblem });

test('a tokens file that becomes damaged is reported once, and only the operator is known then', () => {
  const problems: unknown[] = [];
  const book = openBook((error) => problems.push(error));
  const token = addToken(folder, 'bob', { role: 'viewer', now: MADE });
  const bob = book.find(token);
  expect(bob).toMatchObject({ role: 'viewer' });
  writeFileSync(join(folder, 'tokens.json'), '[');
  expect([book.find(token), bob && book.knows(bob)]).toEqual([null, false]);
  expect(book.find(OPERATOR)).toMatchObject({ role: 'operator' });
  expect(problems).toHaveLength(1);
  writeFileSync(join(folder, 'tokens.json'), '[]');
  addToken(folder, 'cleo', { role: 'viewer', now: MADE });
  expect(book.find(OPERATOR)).not.toBeNull();
  expect(problems).toHaveLength(1);
});

test('a token is valid until it expires, and not from that moment on', () => {
  const book = openBook();
  const token = addToken(folder, 'bob', { role: 'viewer', now: MADE, expires_at: '2026-01-01T01:00:00.000Z' });
  const bob = book.find(token);
  now += 3_599_999;
  expect([book.find(token), bob && book.knows(bob)]).toEqual([bob, true]);
  now += 1;
  expect([book.find(token), bob && book.knows(bob)]).toEqual([null, false]);
});

test('frames of streams read the tokens once per event-loop tick, and notice a revoked one in the next', async () => {
  const source = tokensIn(folder);
  const stamp = vi.spyOn(source, 'stamp');
  const book = new TokenBook({ source, operator: fixedOperator(OPERATOR), userName: 'ann', clock });
  const bob = book.find(addToken(folder, 'bob', { role: 'viewer', now: MADE }));
  if (!bob) throw new Error('the token is unknown');
  stamp.mockClear();
  for (let frame = 0; frame < 100; frame += 1) expect(book.knows(bob)).toBe(true);
  expect(stamp).toHaveBeenCalledTimes(1);
  writeFileSync(join(folder, 'tokens.json'), '[]');
  await new Promise((resolve) => setImmediate(resolve));
  expect(book.knows(bob)).toBe(false);
  // A request never uses what an earlier one has read.
  addToken(folder, 'cleo', { role: 'viewer', now: MADE });
  expect(book.findByName('cleo')).toMatchObject({ role: 'viewer' });
});

test('the actor is the person, and the name of the token is kept beside it where it is another', () => {
  const book = openBook();
  const [phone, laptop] = [
    addToken(folder, 'anna-phone', { role: 'replier', now: MADE, person: 'anna' }),
    addToken(folder, 'anna', { role: 'viewer', now: MADE }),
  ];
  expect(book.find(phone)?.actor).toEqual({ kind: 'token', name: 'anna', token: 'anna-phone' });
  expect(book.find(laptop)?.actor).toEqual({ kind: 'token', name: 'anna' });
});

test('a rotated operator token is valid from the next lookup on, and the old one is not', () => {
  const old = operatorToken(folder);
  const book = new TokenBook({ source: tokensIn(folder), operator: operatorIn(folder), userName: 'ann', clock });
  const caller = book.find(old);
  expect(caller).toMatchObject({ role: 'operator' });
  const fresh = rotateOperatorToken(folder);
  expect([book.find(old), caller && book.knows(caller), book.find(fresh)?.role]).toEqual([null, false, 'operator']);
  // A file that is damaged afterwards leaves it in place.
  writeFileSync(join(folder, 'token'), 'x');
  expect(book.find(fresh)).not.toBeNull();
});

test.each(['', ' \n', 'short', 'with a space in it 123'])(
  'a file %j is not taken for the token of the operator',
  (text) => {
    writeFileSync(join(folder, 'token'), text);
    expect(() => operatorToken(folder)).toThrow(/contains no token\. Delete it/);
    expect(() => readOperatorToken(folder)).toThrow(/contains no token/);
  },
);

test("each registered operator token is an operator of its own; the first one is the server's own", async () => {
  const operators = [
    { sha256: hashToken('first'), user: 'ann' },
    { sha256: hashToken('second'), user: 'bob' },
  ];
  let hosts = [hashToken('host-a')];
  let reloads = 0;
  const source = {
    stamp: () => String(reloads),
    list: () => [],
    reload: async () => {
      reloads += 1;
      hosts = [hashToken('host-b')];
    },
  };
  const operator = { stamp: () => '', list: () => operators };
  const book = new TokenBook({ source, operator, userName: 'server', clock, hosts: () => hosts });
  for (const [token, name] of [
    ['first', 'ann'],
    ['second', 'bob'],
  ] as const)
    expect(book.find(token)).toMatchObject({
      actor: { kind: 'user', name },
      role: 'operator',
      token: null,
      isHost: false,
    });
  expect(book.findByName(null)?.actor.name).toBe('ann');
  expect(await book.resolve('host-a')).toMatchObject({ role: 'viewer', isHost: true });
  expect(reloads).toBe(0);
  // Only an unknown token causes another read.
  expect(await book.resolve('host-b')).toMatchObject({ role: 'viewer', isHost: true });
  expect([reloads, book.find('host-a'), await book.resolve('nobody')]).toEqual([1, null, null]);
});

test('the token of the operator is made once', () => {
  expect(operatorToken(folder)).toBe(operatorToken(folder));
});

test.each([
  'a'.repeat(16),
  'a'.repeat(64),
  'ab'.repeat(40),
  'password'.repeat(6),
  '0123456789'.repeat(4),
  'abcdefghijklmnopqrstuvwxyzabcdef',
  'prl_0000000000000000000000000000000000',
  'ab12cd34ef56gh78ab12cd34ef56gh78',
  'short-but-Mixed-9x',
  '1'.repeat(500),
  'aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb',
  'has a space in it 0f8Kd2mQx7Vb4Zt9Lw',
])('PARLEY_TOKEN %s is refused with the way to make a better one', (token) => {
  expect(() => checkStrength(token)).toThrow(/PARLEY_TOKEN is too easy to guess: .*openssl rand -hex 32/);
  try {
    checkStrength(token);
  } catch (error) {
    expect((error as Error).message).not.toContain(token);
  }
});

test('random tokens are taken, in hexadecimal and in base64', () => {
  for (let count = 0; count < 500; count += 1) expect(() => checkStrength(newToken())).not.toThrow();
  for (const token of [
    '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'c3ab8ff13720e8ad9047dd39466b3c89',
    '550e8400-e29b-41d4-a716-446655440000',
  ])
    expect(estimateBits(token)).toBeGreaterThan(96);
});

test.each(['2026-13-45T00:00:00Z', '2026-01-01Tnonsense'])(
  'a token that expires at %s, which is not a time, is expired',
  (expires) => {
    const token = addToken(folder, 'bob', { role: 'operator', now: MADE, expires_at: expires });
    const book = openBook();
    expect([book.find(token), book.findByName('bob')]).toEqual([null, null]);
  },
);
