// Responses to wrong credentials are delayed more and more, in bounded memory, and counted per address and minute.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/kernel/json.js';
import { FailedAttempts } from '../../src/service/access/failed-attempts.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const MINUTE = 60_000;
const LIMITS = { free: 2, firstDelayMs: 100, longestDelayMs: 400, mostDelayed: 5, mostDelayedPerAddress: 2 };

function open() {
  const timers = new SimulatedTimers();
  const state = { now: 10 * MINUTE };
  const recorded: JsonObject[] = [];
  const reported: string[] = [];
  const attempts = new FailedAttempts({
    clock: { now: () => state.now },
    timers,
    limits: LIMITS,
    record: async (_at, counts) => void recorded.push(counts),
    onFailed: (address) => reported.push(address),
    onProblem: (error) => {
      throw error;
    },
  });
  // The delay of a response, in simulated time.
  const delayOf = async (address: string): Promise<number | 'refused'> => {
    let waited = 0;
    let outcome: number | null | undefined;
    const failing = attempts.fail(address).then((retry) => (outcome = retry));
    for (;;) {
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
      if (outcome !== undefined) break;
      timers.advance(100);
      waited += 100;
    }
    await failing;
    return outcome === null ? waited : 'refused';
  };
  return { timers, state, recorded, reported, attempts, delayOf };
}

test('the first failures of an address are answered at once, each further one later, up to a limit', async () => {
  const { delayOf } = open();
  const delays: unknown[] = [];
  for (let count = 0; count < 6; count += 1) delays.push(await delayOf('192.0.2.1'));
  expect(delays).toEqual([0, 0, 100, 200, 400, 400]);
  // Another address starts from zero; another host of the same IPv6 network does not.
  expect(await delayOf('192.0.2.2')).toBe(0);
  for (const host of ['2001:db8::1', '2001:db8::2', '2001:db8::3']) delays.push(await delayOf(host));
  expect(delays.slice(6)).toEqual([0, 0, 100]);
});

test('an address that has been quiet for ten minutes begins anew', async () => {
  const { delayOf, state } = open();
  for (let count = 0; count < 5; count += 1) await delayOf('192.0.2.1');
  state.now += 10 * MINUTE;
  expect(await delayOf('192.0.2.1')).toBe(0);
});

test('a bounded number of requests wait; more are refused with the time to try again', async () => {
  const { attempts } = open();
  const refusals: unknown[] = [];
  const waiting: Promise<unknown>[] = [];
  for (const address of ['a', 'b', 'c', 'd'])
    for (let count = 0; count < 4; count += 1)
      waiting.push(attempts.fail(`192.0.2.${address.charCodeAt(0)}`).then((retry) => refusals.push(retry)));
  await Promise.resolve();
  await Promise.resolve();
  // Two each are free, two may wait, five in all.
  expect(refusals.filter((retry) => retry === 1)).toHaveLength(3);
  await attempts.close();
  await Promise.all(waiting);
  expect(refusals).toHaveLength(16);
});

test('failures are counted per address and minute, and a flood of addresses is counted together', async () => {
  const { attempts, state, recorded, reported } = open();
  for (let count = 0; count < 40; count += 1) await attempts.fail(`198.51.100.${count}`);
  await attempts.fail('198.51.100.0');
  state.now += MINUTE;
  await attempts.fail('198.51.100.7');
  await attempts.flush();
  expect(recorded).toHaveLength(2);
  expect(recorded[0]).toMatchObject({
    minute: '1970-01-01T00:10:00.000Z',
    other: 8,
    addresses: { '198.51.100.0': 2, '198.51.100.31': 1 },
  });
  expect(Object.keys(recorded[0]?.['addresses'] as JsonObject)).toHaveLength(32);
  expect(recorded[1]).toEqual({ minute: '1970-01-01T00:11:00.000Z', addresses: { '198.51.100.7': 1 } });
  expect(reported).toHaveLength(33);
});
