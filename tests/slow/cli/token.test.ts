// parley token: made, listed without what they are, taken back; every mistake is told.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/clock.js';
import { fixedOperator } from '../../../src/service/operator-token.js';
import { TokenBook } from '../../../src/service/token-book.js';
import { tokensIn } from '../../../src/service/tokens.js';
import { createSite, parley } from '../../support/command.js';

test('a token is printed once, kept as a hash, counts with its role, and counts for nothing when it is removed', async () => {
  const site = createSite();
  const { code, stdout } = await parley(site, ['token', 'add', 'anna', '--role', 'viewer']);
  const token = stdout.trim();
  expect([code, token]).toEqual([0, expect.stringMatching(/^prl_[\w-]{32}$/)]);
  const file = join(site.data, 'tokens.json');
  expect(readFileSync(file, 'utf8')).not.toContain(token);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const book = new TokenBook({ source: tokensIn(site.data), operator: fixedOperator('operator-token-1'), userName: 'me', clock: systemClock });
  expect(book.find(token)).toMatchObject({ actor: { kind: 'token', name: 'anna' }, role: 'viewer' });
  expect(book.find('operator-token-1')).toMatchObject({ actor: { kind: 'user', name: 'me' }, role: 'operator' });
  expect(book.find(`${token}x`)).toBeNull();
  const listed = await parley(site, ['token', 'ls']);
  expect(listed.stdout).toMatch(/anna +anna +viewer +\d{4}-.* never +never/);
  expect(listed.stdout).not.toContain(token);
  expect((await parley(site, ['token', 'rm', 'anna'])).code).toBe(0);
  expect(book.find(token)).toBeNull();
});

test.each([
  ['a name that is there', ['token', 'add', 'anna'], /There is already a token named "anna"/],
  ['a name with a line end', ['token', 'add', 'a\nb'], /A token's name is 1 to 100 letters/],
  ['an unknown role', ['token', 'add', 'bob', '--role', 'king'], /Allowed choices are viewer, replier, operator/],
  ['removing one that is not there', ['token', 'rm', 'bob'], /There is no token named "bob"/],
  ['no subcommand', ['token'], /Usage: parley token/],
  ['an unknown subcommand', ['token', 'make'], /unknown command 'make'/],
])('%s is refused with a sentence', async (_what, args, said) => {
  const site = createSite();
  await parley(site, ['token', 'add', 'anna']);
  const { code, stderr } = await parley(site, args);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
});
