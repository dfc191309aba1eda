import { expect, test } from 'vitest';
import { clip, redact } from '../../src/kernel/redact.js';

// Made up, in the forms that the services use.
test.each([
  ['an OpenAI key', 'key sk-proj-abcdEFGH1234', 'key [redacted]'],
  ['a Google key', 'AIzaSyA1234567890abcdefghijk failed', '[redacted] failed'],
  ['a GitHub token', 'ghp_abcdefghij0123456789 x', '[redacted] x'],
  ['a JWT', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl.', 'got [redacted].'],
  ['a bearer token', 'Authorization: Bearer abc123def456', 'Authorization: Bearer [redacted]'],
  ['a token of ours', 'with prl_Zm9vYmFyYmF6cXV4MTIzNDU2, whsec_Zm9vYmFyYmF6cXV4', 'with [redacted], [redacted]'],
  ['the password in an address', 'postgres://ann:hunter@db/x and https://u:p%40ss@h', 'postgres://ann:[redacted]@db/x and https://u:[redacted]@h'],
  ['a named secret', 'api_key="q1w2e3r4t5", password: hunter2hunter2', 'api_key="[redacted]", password: [redacted]'],
])('%s is taken out', (_what, text, expected) => {
  expect(redact(text)).toBe(expected);
});

test.each(['Unexpected token: identifier in a.js', 'Unexpected token } in JSON', 'the password: please', 'Missing environment variable: `FAKE_API_KEY`.', 'skip-list sk-1', 'http://127.0.0.1:7717/a@b', 'see file:///a:b', 'prl_short'])('plain text stays: %s', (text) => {
  expect(redact(text)).toBe(text);
});

test('text of any kind is read in one go', () => {
  // A pattern that tries again at every place would run into the test's time limit by far.
  for (const text of [`x${' '.repeat(400_000)}y`, 'token='.repeat(80_000), `Bearer ${' '.repeat(400_000)}`, 'eyJ'.repeat(150_000), 'a://'.repeat(100_000), `a://${':'.repeat(400_000)}`]) expect(redact(text).length).toBeGreaterThan(0);
});

test('a long text is cut with a sign, a short one is not touched', () => {
  expect(clip('abcdef', 3)).toBe('abc…');
  expect(clip('abc', 3)).toBe('abc');
});
