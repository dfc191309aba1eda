// Tokens that hosts share, while they can be read and while they cannot.
import { expect, onTestFinished, test } from 'vitest';
import { SharedTokens } from '../../src/service/shared-tokens.js';
import type { NamedToken } from '../../src/service/tokens.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const LOOK_MS = 2000;
const named = (name: string): NamedToken => ({ name, role: 'viewer', sha256: '0'.repeat(64), created_at: '2026-01-01T00:00:00.000Z' });

test('an outage is told once, another one again; what was read last counts all the while', async () => {
  const timers = new SimulatedTimers();
  let answer: readonly NamedToken[] | Error = [named('ann')];
  const told: string[] = [];
  const tokens = await SharedTokens.open(async () => {
    if (answer instanceof Error) throw answer;
    return { tokens: answer, operator: 'prl_operator' };
  }, timers, (error) => void told.push((error as Error).message));
  onTestFinished(() => tokens.close());
  const look = async (): Promise<string[]> => {
    timers.advance(LOOK_MS);
    await timers.armed(LOOK_MS);
    return tokens.list().map(({ name }) => name);
  };
  answer = new Error('first');
  for (let looks = 0; looks < 5; looks += 1) expect(await look()).toEqual(['ann']);
  expect(told).toEqual(['first']);
  answer = [named('bob')];
  expect(await look()).toEqual(['bob']);
  answer = new Error('second');
  for (let looks = 0; looks < 3; looks += 1) expect(await look()).toEqual(['bob']);
  expect(told).toEqual(['first', 'second']);
});

test('a request after a notification of a change waits until the tokens are read', async () => {
  let state = { tokens: [named('ann')] as readonly NamedToken[], operator: 'prl_first' };
  let isHeld = false;
  const gate = new Gate();
  const tokens = await SharedTokens.open(async () => {
    if (isHeld) await gate.opened;
    return state;
  }, new SimulatedTimers(), () => {});
  onTestFinished(() => tokens.close());
  const before = tokens.stamp();
  isHeld = true;
  state = { tokens: [], operator: 'prl_second' };
  tokens.changed();
  const refreshed = tokens.refresh();
  expect(tokens.list()).toHaveLength(1);
  gate.open();
  await refreshed;
  expect([tokens.list(), tokens.operator.token()]).toEqual([[], 'prl_second']);
  expect(tokens.stamp()).not.toBe(before);
});
