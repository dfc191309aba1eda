// Engines that would renew one login at the same time: one does, the others wait for it, and none waits forever.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as settle } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { LoginRenewals } from '../../src/machine/logins/login-renewals.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-logins-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

// A clock and timers that move together, in steps between which all pending work runs.
class Time {
  readonly #timers = new SimulatedTimers();
  #now = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  set(ms: number, fire: () => void): () => void {
    return this.#timers.set(ms, fire);
  }

  async advance(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      this.#now += 50;
      this.#timers.advance(50);
      await settle();
    }
  }
}

const codex = findEngine('codex');
const userOf = (home: string) => ({ home: folder, env: { CODEX_HOME: home } });

function logIn(expiresAt: number): void {
  const token = ['{}', JSON.stringify({ exp: expiresAt / 1000 }), '']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
  writeFileSync(
    join(folder, 'auth.json'),
    JSON.stringify({ auth_mode: 'chatgpt', tokens: { access_token: token, refresh_token: 'once' } }),
  );
}

// The engines that were admitted, in order.
function admitAll(
  renewals: LoginRenewals,
  count: number,
): { readonly let: number[]; readonly leave: Map<number, () => void> } {
  const [admitted, leave] = [[] as number[], new Map<number, () => void>()];
  for (let each = 0; each < count; each += 1)
    void renewals.admit(codex, userOf(folder)).then((release) => leave.set(each, release) && admitted.push(each));
  return { let: admitted, leave };
}

test.each([-1000, 200_000])(
  'of several with a login that expires in %d ms one starts; the others follow after its renewal',
  async (left) => {
    const time = new Time();
    logIn(time.now() + left);
    const { let: admitted } = admitAll(new LoginRenewals(time, time), 4);
    await time.advance(1000);
    expect(admitted).toEqual([0]);
    logIn(time.now() + 3_600_000);
    await time.advance(200);
    expect(admitted).toEqual([0, 1, 2, 3]);
  },
);

test('one that ends without having renewed it lets the next one try', async () => {
  const time = new Time();
  logIn(time.now() - 1000);
  const { let: admitted, leave } = admitAll(new LoginRenewals(time, time), 3);
  await time.advance(1000);
  leave.get(0)?.();
  await time.advance(200);
  expect(admitted).toEqual([0, 1]);
  // One that hangs does not block them forever.
  await time.advance(30_000);
  expect(admitted).toEqual([0, 1, 2]);
});

test('a login that holds, a key, none at all and another engine start at once', async () => {
  const time = new Time();
  const renewals = new LoginRenewals(time, time);
  expect((await renewals.admit(codex, userOf(folder)))()).toBeUndefined();
  logIn(time.now() + 400_000);
  const good = admitAll(renewals, 2);
  await time.advance(1);
  expect(good.let).toEqual([0, 1]);
  for (const text of ['{"OPENAI_API_KEY":"sk"}', 'nonsense', '{"tokens":{"access_token":"a.b.c"}}', '']) {
    writeFileSync(join(folder, 'auth.json'), text);
    const { let: admitted } = admitAll(renewals, 2);
    await time.advance(1);
    expect(admitted, text).toEqual([0, 1]);
  }
  await renewals.admit(findEngine('gemini'), userOf(folder));
});

test('the same file behind a link is the same login', async () => {
  const time = new Time();
  const renewals = new LoginRenewals(time, time);
  logIn(time.now() - 1000);
  const other = mkdtempSync(join(folder, 'other-'));
  symlinkSync(join(folder, 'auth.json'), join(other, 'auth.json'));
  const admitted: string[] = [];
  for (const home of [folder, other]) void renewals.admit(codex, userOf(home)).then(() => admitted.push(home));
  await time.advance(1000);
  expect(admitted).toEqual([folder]);
});
