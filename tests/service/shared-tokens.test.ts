// Tokens that hosts share, while the database is available and while it is not.
import { expect, onTestFinished, test } from 'vitest';
import { SharedTokens, type SharedState } from '../../src/service/access/shared-tokens.js';
import type { NamedToken } from '../../src/service/access/tokens.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const LOOK_MS = 2000;
const RELOAD_MS = 50;
const named = (name: string): NamedToken => ({
  name,
  role: 'viewer',
  sha256: '0'.repeat(64),
  created_at: '2026-01-01T00:00:00.000Z',
});
const operator = (sha256: string) => ({ sha256, user: 'ann' });

test('each outage is reported once; the tokens read last stay valid meanwhile', async () => {
  const timers = new SimulatedTimers();
  let answer: readonly NamedToken[] | Error = [named('ann')];
  const notices: string[] = [];
  const tokens = await SharedTokens.open(
    async () => {
      if (answer instanceof Error) throw answer;
      return { tokens: answer, operators: [], hosts: [] };
    },
    timers,
    (error) => void notices.push((error as Error).message),
  );
  onTestFinished(() => tokens.close());
  const look = async (): Promise<string[]> => {
    timers.advance(LOOK_MS);
    await timers.armed(LOOK_MS);
    return tokens.list().map(({ name }) => name);
  };
  answer = new Error('first');
  for (let looks = 0; looks < 5; looks += 1) expect(await look()).toEqual(['ann']);
  expect(notices).toEqual(['first']);
  answer = [named('bob')];
  expect(await look()).toEqual(['bob']);
  answer = new Error('second');
  for (let looks = 0; looks < 3; looks += 1) expect(await look()).toEqual(['bob']);
  expect(notices).toEqual(['first', 'second']);
});

test('a request after a notification of a change waits until the tokens are read', async () => {
  let state: SharedState = { tokens: [named('ann')], operators: [operator('first')], hosts: ['host-a'] };
  let isHeld = false;
  const gate = new Gate();
  const tokens = await SharedTokens.open(
    async () => {
      if (isHeld) await gate.opened;
      return state;
    },
    new SimulatedTimers(),
    () => {},
  );
  onTestFinished(() => tokens.close());
  const before = tokens.stamp();
  isHeld = true;
  state = { tokens: [], operators: [operator('second')], hosts: ['host-b'] };
  tokens.changed();
  const refreshed = tokens.refresh();
  expect(tokens.list()).toHaveLength(1);
  gate.open();
  await refreshed;
  expect([tokens.list(), tokens.operator.list(), tokens.hosts()]).toEqual([[], [operator('second')], ['host-b']]);
  expect(tokens.stamp()).not.toBe(before);
});

test('requests with unknown tokens share one read, which begins after them', async () => {
  const timers = new SimulatedTimers();
  let reads = 0;
  const tokens = await SharedTokens.open(
    async () => {
      reads += 1;
      return { tokens: [named(`read ${reads}`)], operators: [], hosts: [] };
    },
    timers,
    () => {},
  );
  onTestFinished(() => tokens.close());
  const waiting = Array.from({ length: 100 }, () => tokens.reload());
  expect(reads).toBe(1);
  timers.advance(RELOAD_MS);
  await Promise.all(waiting);
  expect([reads, tokens.list()]).toEqual([2, [named('read 2')]]);
  // A caller that waits when the server stops is released.
  const last = tokens.reload();
  await tokens.close();
  await last;
});

test('while an earlier read for unknown tokens takes its time, no other one begins', async () => {
  const timers = new SimulatedTimers();
  const gate = new Gate();
  let reads = 0;
  const tokens = await SharedTokens.open(
    async () => {
      reads += 1;
      if (reads === 2) await gate.opened;
      return { tokens: [], operators: [], hosts: [] };
    },
    timers,
    () => {},
  );
  onTestFinished(() => tokens.close());
  const first = tokens.reload();
  timers.advance(RELOAD_MS);
  await expect.poll(() => reads).toBe(2);
  const second = tokens.reload();
  timers.advance(RELOAD_MS);
  // Requests with known tokens do not wait for it.
  await tokens.refresh();
  expect(reads).toBe(2);
  gate.open();
  await Promise.all([first, second]);
  expect(reads).toBe(3);
});
