// Which key the real CLIs log in with, if Parley is involved in the choice.
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openRealBench } from './real-bench.js';

// The key that Codex uses for a service that it treats as OpenAI; the service refuses everyone. The settings name no
// variable.
async function keyFrom(env: Record<string, string>, login?: object): Promise<string | undefined> {
  const seen: (string | undefined)[] = [];
  const service = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  try {
    const bench = await openRealBench('codex', { env: () => env });
    const folder = join(bench.root, 'user/.codex');
    const config = readFileSync(join(folder, 'config.toml'), 'utf8').replace(
      'env_key = "SCRIPTED_API_KEY"',
      'requires_openai_auth = true',
    );
    writeFileSync(
      join(folder, 'config.toml'),
      config.replace(bench.model.url, `http://127.0.0.1:${(service.address() as AddressInfo).port}`),
    );
    if (login) writeFileSync(join(folder, 'auth.json'), JSON.stringify(login));
    expect((await bench.play('[[done 1]]')).status).toBe('failed');
    return seen[0];
  } finally {
    service.close();
    service.closeAllConnections();
  }
}

test('codex is let in by CODEX_API_KEY', async () => {
  expect(await keyFrom({ CODEX_API_KEY: 'sk-codex' })).toBe('Bearer sk-codex');
});

test('codex is let in by OPENAI_API_KEY, which it does not read itself, where there is no other login', async () => {
  expect(await keyFrom({ OPENAI_API_KEY: 'sk-openai' })).toBe('Bearer sk-openai');
  expect(await keyFrom({ OPENAI_API_KEY: 'sk-openai', CODEX_API_KEY: 'sk-codex' })).toBe('Bearer sk-codex');
});

test('a login of codex goes before OPENAI_API_KEY', async () => {
  expect(await keyFrom({ OPENAI_API_KEY: 'sk-openai' }, { auth_mode: 'apikey', OPENAI_API_KEY: 'sk-login' })).toBe(
    'Bearer sk-login',
  );
});

test.each(['read-only', 'full'] as const)(
  'gemini uses the key in the .env of its user, with the permission %s, not that of a workspace',
  async (permission) => {
    const bench = await openRealBench('gemini', { env: () => ({ GEMINI_API_KEY: undefined }) });
    writeFileSync(join(bench.cwd, '.env'), 'GEMINI_API_KEY=its-own\n');
    expect((await bench.play('[[done 1]]', { permission: 'read-only' })).status).toBe('failed');
    writeFileSync(join(bench.root, 'user/.gemini/.env'), 'GEMINI_API_KEY=dummy\n');
    if (permission === 'full') rmSync(join(bench.cwd, '.env'));
    expect((await bench.play('[[done 1]]', { permission })).status).toBe('succeeded');
  },
);

function tokenFor(expiresInSec: number): string {
  const claims = {
    exp: Math.floor(performance.timeOrigin / 1000) + expiresInSec,
    'https://api.openai.com/auth': { chatgpt_account_id: 'account' },
  };
  return ['{"alg":"none"}', JSON.stringify(claims), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
}

test.each([-3600, 200])(
  'two concurrent runs of codex with a login that expires in %d s renew it once',
  async (left) => {
    const renewals: string[] = [];
    const good = tokenFor(36_000);
    // A refresh token can be used once.
    const service = createServer(async (request, response) => {
      const { refresh_token: refreshToken } = JSON.parse(await text(request)) as { refresh_token: string };
      renewals.push(refreshToken);
      if (refreshToken !== 'first' || renewals.length > 1)
        return void response.writeHead(400).end('{"error":"invalid_grant"}');
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id_token: good, access_token: good, refresh_token: 'second' }));
    });
    service.listen(0, '127.0.0.1');
    await once(service, 'listening');
    try {
      const bench = await openRealBench('codex', {
        env: () => ({
          CODEX_REFRESH_TOKEN_URL_OVERRIDE: `http://127.0.0.1:${(service.address() as AddressInfo).port}/`,
        }),
      });
      const folder = join(bench.root, 'user/.codex');
      const config = join(folder, 'config.toml');
      writeFileSync(
        config,
        readFileSync(config, 'utf8').replace('env_key = "SCRIPTED_API_KEY"', 'requires_openai_auth = true'),
      );
      writeFileSync(
        join(folder, 'auth.json'),
        JSON.stringify({
          auth_mode: 'chatgpt',
          OPENAI_API_KEY: null,
          tokens: {
            id_token: tokenFor(left),
            access_token: tokenFor(left),
            refresh_token: 'first',
            account_id: 'account',
          },
          last_refresh: '2026-01-01T00:00:00Z',
        }),
      );
      const runs = await Promise.all([bench.play('[[done 1]]'), bench.play('[[done 2]]')]);
      expect(runs.map(({ status, result }) => [status, result])).toEqual([
        ['succeeded', 1],
        ['succeeded', 2],
      ]);
      expect(renewals).toEqual(['first']);
      expect(JSON.parse(readFileSync(join(folder, 'auth.json'), 'utf8'))).toMatchObject({
        tokens: { refresh_token: 'second' },
      });
    } finally {
      service.close();
      service.closeAllConnections();
    }
  },
);
