// parley token: created, listed without secrets, revoked; every mistake is reported.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/clock.js';
import { fixedOperator } from '../../../src/service/access/operator-token.js';
import { TokenBook } from '../../../src/service/access/token-book.js';
import { tokensIn } from '../../../src/service/access/tokens.js';
import { openDatabase } from '../../../src/store/sqlite/open-database.js';
import { createSite, parley } from '../../support/command.js';

test('a token is printed once, stored as a hash, grants its role, and grants nothing after it is removed', async () => {
  const site = createSite();
  const { code, stdout } = await parley(site, ['token', 'add', 'anna', '--role', 'viewer']);
  const token = stdout.trim();
  expect([code, token]).toEqual([0, expect.stringMatching(/^prl_[\w-]{32}$/)]);
  const file = join(site.data, 'tokens.json');
  expect(readFileSync(file, 'utf8')).not.toContain(token);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const book = new TokenBook({
    source: tokensIn(site.data),
    operator: fixedOperator('operator-token-1'),
    userName: 'me',
    clock: systemClock,
  });
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
  [
    'an unknown role',
    ['token', 'add', 'bob', '--role', 'king'],
    /cannot be "king": it takes viewer, replier, operator\./,
  ],
  ['removing one that is not there', ['token', 'rm', 'bob'], /There is no token named "bob"/],
  ['no subcommand', ['token'], /Usage: parley token/],
  ['an unknown subcommand', ['token', 'make'], /There is no command "make"\./],
])('%s is refused with a sentence', async (_what, args, said) => {
  const site = createSite();
  await parley(site, ['token', 'add', 'anna']);
  const { code, stderr } = await parley(site, args);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
});

async function tamper({ data }: { readonly data: string }, sql: string): Promise<void> {
  const db = await openDatabase(join(data, 'parley.db'));
  db.exec(sql);
  db.close();
}

const FORGED =
  "INSERT INTO audit (seq, ts, type, body_json, digest) SELECT max(seq) + 1, 1, 'sign_in', '{}', 'x' FROM audit";

test.each([FORGED, 'DELETE FROM audit_head'])(
  'tokens are added and revoked beside a broken journal, and verify keeps reporting it: %s',
  async (sql) => {
    const site = createSite();
    for (const name of ['anna', 'bert']) await parley(site, ['token', 'add', name]);
    await tamper(site, sql);
    const verify = () => parley(site, ['audit', '--verify']);
    expect(await verify()).toMatchObject({ code: 1, stdout: expect.stringMatching(/^CHANGED: .*head/) as string });
    expect((await parley(site, ['audit'])).code).toBe(0);
    expect(await parley(site, ['doctor'])).toMatchObject({
      stdout: expect.stringContaining('the administrative journal was altered') as string,
    });
    for (const args of [
      ['add', 'carl'],
      ['rm', 'anna'],
      ['rotate', 'bert'],
      ['rotate', '--operator'],
    ])
      expect([args, (await parley(site, ['token', ...args])).code]).toEqual([args, 0]);
    expect(
      tokensIn(site.data)
        .list()
        .map(({ name }) => name),
    ).toEqual(['bert', 'carl']);
    expect(await verify()).toMatchObject({ code: 1, stdout: expect.stringContaining('CHANGED') as string });
    expect((await parley(site, ['audit', '--all'])).stdout).toContain('journal.broken');
  },
);

test('tokens are revoked even if the journal cannot be written, which is reported by the exit code', async () => {
  const site = createSite();
  for (const name of ['anna', 'bert']) await parley(site, ['token', 'add', name]);
  const { stdout: operator } = await parley(site, ['token', 'rotate', '--operator']);
  const [, old] = tokensIn(site.data).list();
  await tamper(site, 'ALTER TABLE audit RENAME TO other');
  const said = {
    code: 1,
    stderr: expect.stringContaining('could not be recorded in the administrative journal') as string,
  };
  expect(await parley(site, ['token', 'rm', 'anna'])).toMatchObject(said);
  expect(await parley(site, ['token', 'rotate', 'bert'])).toMatchObject({
    ...said,
    stdout: expect.stringMatching(/^prl_/) as string,
  });
  expect(await parley(site, ['token', 'rotate', '--operator'])).toMatchObject(said);
  expect((await parley(site, ['token', 'add', 'carl'])).code).not.toBe(0);
  const left = tokensIn(site.data).list();
  expect(left.map(({ name }) => name)).toEqual(['bert']);
  expect(left[0]?.sha256).not.toBe(old?.sha256);
  expect(readFileSync(join(site.data, 'token'), 'utf8').trim()).not.toBe(operator.trim());
});
