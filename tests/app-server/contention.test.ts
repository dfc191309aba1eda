// Several processes compete for the same lock or file: one gets it, and the others get an error.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const CONTENDER = fileURLToPath(new URL('../support/app-server-contender.mjs', import.meta.url));
const SOON_MS = 5;
const root = mkdtempSync(join(tmpdir(), 'parley-contention-'));
let contenders: readonly ChildProcess[] = [];

beforeAll(async () => {
  contenders = Array.from({ length: 4 }, () => fork(CONTENDER));
  await Promise.all(contenders.map((child) => once(child, 'message')));
});

afterAll(async () => {
  await Promise.all(contenders.map((child) => Promise.all([once(child, 'exit'), child.kill('SIGKILL')])));
  rmSync(root, { recursive: true, force: true });
});

async function ask(child: ChildProcess, message: object): Promise<unknown> {
  const answered = once(child, 'message');
  child.send(message);
  return (await answered)[0];
}

const ONE_OF_FOUR = ['held', 'in_use', 'in_use', 'in_use'];

test('of four processes that want an instance whose owner is dead, one has it', async () => {
  for (let round = 0; round < 40; round += 1) {
    const folder = join(root, `instance-${round}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'owner'), '4194305\n');
    const at = Date.now() + SOON_MS;
    const outcomes = await Promise.all(contenders.map((child) => ask(child, { kind: 'instance', folder, at })));
    expect(outcomes.toSorted()).toEqual(ONE_OF_FOUR);
    await Promise.all(contenders.map((child) => ask(child, { kind: 'release' })));
    expect(await ask(contenders[round % 4] as ChildProcess, { kind: 'instance', folder, at })).toBe('held');
    await Promise.all(contenders.map((child) => ask(child, { kind: 'release' })));
  }
});

test('of four instances that want the same home, one has it', async () => {
  for (let round = 0; round < 40; round += 1) {
    const folder = join(root, `home-${round}`);
    const at = Date.now() + SOON_MS;
    const outcomes = await Promise.all(
      contenders.map((child, index) => {
        const me = join(root, `owner-${index}`);
        mkdirSync(me, { recursive: true });
        return ask(child, { kind: 'home', folder, me, at });
      }),
    );
    expect(outcomes.toSorted()).toEqual(ONE_OF_FOUR);
  }
});

test('an instance whose owner is killed is free', async () => {
  const folder = join(root, 'killed');
  mkdirSync(folder);
  const owner = fork(CONTENDER);
  await once(owner, 'message');
  expect(await ask(owner, { kind: 'instance', folder, at: 0 })).toBe('held');
  expect(await ask(contenders[0] as ChildProcess, { kind: 'instance', folder, at: 0 })).toBe('in_use');
  await Promise.all([once(owner, 'exit'), owner.kill('SIGKILL')]);
  expect(await ask(contenders[0] as ChildProcess, { kind: 'instance', folder, at: 0 })).toBe('held');
});
