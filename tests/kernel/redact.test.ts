import { expect, test } from 'vitest';
import { clip, redact } from '../../src/kernel/redact.js';
import { expectLinear } from '../support/growth.js';

// Invented, in the forms that the services use.
test.each([
  ['an OpenAI key', 'key sk-proj-abcdEFGH1234', 'key [redacted]'],
  ['a Google key', 'AIzaSyA1234567890abcdefghijk failed', '[redacted] failed'],
  ['a GitHub token', 'ghp_abcdefghij0123456789 x', '[redacted] x'],
  ['a JWT', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl.', 'got [redacted].'],
  ['a bearer token', 'Authorization: Bearer abc123def456', 'Authorization: Bearer [redacted]'],
  ['a token of ours', 'with prl_Zm9vYmFyYmF6cXV4MTIzNDU2, whsec_Zm9vYmFyYmF6cXV4', 'with [redacted], [redacted]'],
  [
    'the password in an address',
    'postgres://ann:hunter@db/x and https://u:p%40ss@h',
    'postgres://ann:[redacted]@db/x and https://u:[redacted]@h',
  ],
  ['a password with @ in it', 'postgres://ann:hun@ter@2@db/x', 'postgres://ann:[redacted]@db/x'],
  [
    'a password with / in it',
    'to postgres://ann:hun/ter/@db:5432/x, https://ann:a/b@h',
    'to postgres://ann:[redacted]@db:5432/x, https://ann:[redacted]@h',
  ],
  [
    'a password that begins like a port',
    'postgres://ann:5432/hunter@db and https://ann:80/x@h',
    'postgres://ann:[redacted]@db and https://ann:[redacted]@h',
  ],
  ['the password of a user with @', 'amqp://ann@corp.org:hunter@mq', 'amqp://ann@corp.org:[redacted]@mq'],
  [
    'a password before an address of six parts',
    'postgres://ann:h/un@[::1]:5432/x',
    'postgres://ann:[redacted]@[::1]:5432/x',
  ],
  [
    'a password within JSON',
    '{"url":"postgres://ann:h@/un@db","mail":"ann@corp.org"}',
    '{"url":"postgres://ann:[redacted]@db","mail":"ann@corp.org"}',
  ],
  [
    'a password with a quote or a bracket in it',
    `postgres://u:pa"ss@host/db postgres://u:pa'ss@host postgres://u:pa<ss>@host`,
    'postgres://u:[redacted]@host/db postgres://u:[redacted]@host postgres://u:[redacted]@host',
  ],
  [
    'a password of digits and a #',
    'https://ci.bot:1234#5@git.example.com/r.git',
    'https://ci.bot:[redacted]@git.example.com/r.git',
  ],
  ['a named secret', 'api_key="q1w2e3r4t5", password: hunter2hunter2', 'api_key="[redacted]", password: [redacted]'],
])('%s is taken out', (_what, text, expected) => {
  expect(redact(text)).toBe(expected);
});

test.each([
  'Unexpected token: identifier in a.js',
  'Unexpected token } in JSON',
  'the password: please',
  'Missing environment variable: `FAKE_API_KEY`.',
  'skip-list sk-1',
  'http://127.0.0.1:7717/a@b',
  'http://localhost:7717?mail=a@b',
  'http://[::1]:7717/a@b',
  'https://example.org:443/a:b@c',
  '{"url":"http://h","to":"a:b@c"}',
  '{"url":"http://localhost:3000","mail":"ann@corp.org"}',
  "['http://a.b:80','ann@corp.org']",
  'see file:///a:b',
  'prl_short',
])('plain text stays: %s', (text) => {
  expect(redact(text)).toBe(text);
});

test.each<[string, (times: number) => string]>([
  ['x   y', (times) => `x${' '.repeat(4 * times)}y`],
  ['token=token=', (times) => 'token='.repeat(times)],
  ['Bearer   ', (times) => `Bearer ${' '.repeat(4 * times)}`],
  ['eyJeyJ', (times) => 'eyJ'.repeat(times)],
  ['eyJ-eyJ-', (times) => 'eyJ-'.repeat(times)],
  ['eyJ.eyJ.', (times) => 'eyJ.'.repeat(times)],
  ['a://a://', (times) => 'a://'.repeat(times)],
  ['a://:::', (times) => `a://${':'.repeat(4 * times)}`],
  ['a://b:a://b:', (times) => 'a://b:'.repeat(times)],
  ['a://b:ca://b:c@', (times) => `${'a://b:c'.repeat(times)}@`],
  ['http://a.http://a.', (times) => 'http://a.'.repeat(times)],
])('a long text of the form %j is redacted in linear time', async (_form, textOf) => {
  await expectLinear(5_000, (times) => redact(textOf(times)));
});

test('a long text is cut with a sign, a short one is not touched', () => {
  expect(clip('abcdef', 3)).toBe('abc…');
  expect(clip('abc', 3)).toBe('abc');
});
