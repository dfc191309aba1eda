// The time that hosts share, from a clock of their own and what the database says.
import { expect, test } from 'vitest';
import { SharedClock } from '../../src/dispatch/postgres/shared-clock.js';

function scene(differsMs: number, tookMs = 10) {
  let own = 1_000_000;
  const clock = new SharedClock({ now: () => own });
  const learn = () => clock.learn(async () => {
    own += tookMs / 2;
    const theirs = own + differsMs;
    own += tookMs / 2;
    return theirs;
  });
  return { clock, learn, own: () => own, step: (ms: number) => (own += ms) };
}

test.each([3_600_000, -3_600_000, 1500])('a clock that differs by %d ms is corrected', async (differsMs) => {
  const { clock, learn, own } = scene(differsMs);
  await learn();
  expect(clock.now()).toBe(own() + differsMs);
});

test.each([[0, 10], [900, 10], [-900, 10], [1400, 1000]])('one that differs by %d ms, told within %d ms, is let be', async (differsMs, tookMs) => {
  const { clock, learn, own } = scene(differsMs, tookMs);
  await learn();
  expect(clock.now()).toBe(own());
});

test('a clock that is set right is noticed, and one that cannot be compared is used as it was', async () => {
  const { clock, learn, own, step } = scene(3_600_000);
  await learn();
  await expect(clock.learn(async () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(clock.now()).toBe(own() + 3_600_000);
  step(3_600_000);
  await clock.learn(async () => own());
  expect(clock.now()).toBe(own());
});
