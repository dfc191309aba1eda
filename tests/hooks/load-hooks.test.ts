// Secrets of webhooks: found where the settings say, refused if they are invalid, and never repeated.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadHooks, namedHooks } from '../../src/hooks/load-hooks.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-secret-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const fromEnv = { name: 'a', url: 'https://example.org/a', secret_env: 'SECRET' };
const all = ['waiting_user', 'succeeded', 'failed', 'canceled', 'silent'];

test('a secret is plain text or base64 after whsec_, from the environment or a file', () => {
  const bytes = Buffer.from(Array.from({ length: 24 }, (_, index) => index * 10));
  writeFileSync(join(dir, 'secret'), `whsec_${bytes.toString('base64')}\n`);
  const fromFile = {
    name: 'b',
    url: 'https://example.org/b',
    secret_file: join(dir, 'secret'),
    events: ['failed'],
  } as const;
  expect(loadHooks([fromEnv, fromFile], { SECRET: 'plain text, long enough' })).toEqual([
    { name: 'a', url: 'https://example.org/a', events: all, key: Buffer.from('plain text, long enough') },
    { name: 'b', url: 'https://example.org/b', events: ['failed'], key: bytes },
  ]);
  expect(namedHooks([fromEnv, fromFile])).toEqual([
    { name: 'a', events: all },
    { name: 'b', events: ['failed'] },
  ]);
});

test('a secret that is missing, short or damaged is refused with its place and without itself', () => {
  for (const [env, problem] of [
    [{}, 'Webhook "a": the environment variable SECRET has no secret in it'],
    [{ SECRET: '' }, 'has no secret in it'],
    [{ SECRET: 'hidden' }, 'is shorter than 16 bytes'],
    [{ SECRET: 'whsec_hidden words hidden words' }, 'is not base64'],
    [{ SECRET: 'whsec_aGlkZGVu' }, 'is shorter than 16 bytes'],
  ] as const) {
    expect(() => loadHooks([fromEnv], env), JSON.stringify(env)).toThrow(problem);
    expect(() => loadHooks([fromEnv], env)).not.toThrow(/hidden|aGlk/);
  }
  expect(() => loadHooks([{ name: 'b', url: 'https://example.org', secret_file: join(dir, 'nowhere') }], {})).toThrow(
    /Webhook "b": its secret cannot be read: there is no file /,
  );
});
