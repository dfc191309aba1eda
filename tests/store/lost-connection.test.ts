// The URL of a database: the part that may be shown, and refusals.
import { expect, test } from 'vitest';
import { phrase } from '../../src/messages/phrase.js';
import { readPlace } from '../../src/store/postgres/connection/lost-connection.js';

test('the name says where the database is, the password is decoded so that it can be hidden', () => {
  expect(readPlace('postgresql://u:a%2Fb%25c@h:5433/my%20runs')).toEqual({
    name: 'my runs at h:5433',
    label: phrase('database_at', { database: 'my runs', host: 'h:5433' }),
    password: 'a/b%c',
  });
  expect(readPlace('postgres://u@h')).toEqual({
    name: 'postgres at h',
    label: phrase('database_at', { database: 'postgres', host: 'h' }),
    password: '',
  });
});

test.each([
  ['in the password', 'postgresql://u:geheim%@h/d'],
  ['before an invalid code', 'postgresql://u:geheim%zz@h/d'],
  ['before half a code', 'postgresql://u:geheim%4@h/d'],
  ['with codes that are no UTF-8', 'postgresql://u:geheim%E4@h/d'],
  ['in the name of the user', 'postgresql://u%:geheim@h/d'],
  ['in the name of the user, with codes that are no UTF-8', 'postgresql://u%FF:geheim@h/d'],
  ['in the name of the database', 'postgresql://u:geheim@h/50%'],
  // The driver would then read the code in the password as four characters.
  ['in an option', 'postgresql://u:geheim%2Fnis@h/d?application_name=50%'],
])('a %% %s is refused with a correction, and the password is not shown', (_where, url) => {
  let error: unknown;
  try {
    readPlace(url);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('%25') as string });
  expect(`${(error as Error).message} ${(error as Error).stack}`).not.toContain('geheim');
});
