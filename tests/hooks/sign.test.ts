// The signature, checked by the example code of docs/reference/webhooks.md and by the example of the standard.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { loadHooks } from '../../src/hooks/load-hooks.js';
import { signedHeaders } from '../../src/hooks/sign.js';

type Verify = (headers: Record<string, string | undefined>, body: string, secret: string, now?: number) => unknown;

async function importExample(): Promise<Verify> {
  const page = readFileSync(new URL('../../docs/reference/webhooks.md', import.meta.url), 'utf8');
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
  const dir = mkdtempSync(join(tmpdir(), 'parley-docs-'));
  try {
    writeFileSync(join(dir, 'verify.mjs'), code);
    return ((await import(pathToFileURL(join(dir, 'verify.mjs')).href)) as { verify: Verify }).verify;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const keyOf = (secret: string): Buffer =>
  loadHooks([{ name: 'a', url: 'https://example.org', secret_env: 'S' }], { S: secret })[0]?.key ?? Buffer.alloc(0);

test('the example in the documentation takes what we sign, and nothing else', async () => {
  const verify = await importExample();
  const [body, now] = ['{"text":"é 漢字"}', 1_700_000_000_999];
  for (const secret of [
    'plain text, long enough',
    `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`,
  ]) {
    const headers = signedHeaders(keyOf(secret), { id: 'dlv_1', now, body });
    expect(verify(headers, body, secret, now)).toEqual({ text: 'é 漢字' });
    expect(
      verify({ ...headers, 'webhook-signature': `v1,xxxx ${headers['webhook-signature']}` }, body, secret, now),
    ).not.toBeNull();
    for (const [changed, text, key, at] of [
      [headers, `${body} `, secret, now],
      [headers, body, `${secret}0000`, now],
      [headers, body, secret, now + 301_000],
      [{ ...headers, 'webhook-id': 'dlv_2' }, body, secret, now],
      [{}, body, secret, now],
    ] as const) {
      expect(verify(changed, text, key, at)).toBeNull();
    }
  }
});

test('it equals the example of the standard', () => {
  const headers = signedHeaders(keyOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    now: 1_614_265_330_000,
    body: '{"test": 2432232314}',
  });
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});
