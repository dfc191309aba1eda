// The time that hosts share, from what the database says and a time that only goes on.
import { expect, test } from 'vitest';
import { SharedClock } from '../../src/dispatch/postgres/shared-clock.js';

const T0 = 1_700_000_000_000;

// The clock of the machine says T0 when it begins; the database differs from it.
function scene(differsMs: number, tookMs = 10) {
  let gone = 500;
  const clock = new SharedClock({ now: () => T0 }, () => gone);
  const learn = (differs = differsMs) =>
    clock.learn(async () => {
      gone += tookMs / 2;
      const theirs = T0 + (gone - 500) + differs;
      gone += tookMs / 2;
      return theirs;
    });
  return { clock, learn, own: () => T0 + (gone - 500), step: (ms: number) => (gone += ms) };
}

test.each([3_600_000, -3_600_000, 1500])('a clock that differs by %d ms is corrected', async (differsMs) => {
  const { clock, learn, own } = scene(differsMs);
  await learn();
  expect(clock.now()).toBe(own() + differsMs);
});

test.each([
  [0, 10],
  [900, 10],
  [-900, 10],
  [1400, 1000],
])('one that differs by %d ms, told within %d ms, is let be', async (differsMs, tookMs) => {
  const { clock, learn, own } = scene(differsMs, tookMs);
  await learn();
  expect(clock.now()).toBe(own());
});

test('it goes on by itself while nothing is heard, and follows when the database is another', async () => {
  const { clock, learn, own, step } = scene(3_600_000);
  await learn();
  await expect(clock.learn(async () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  step(60_000);
  expect(clock.now()).toBe(own() + 3_600_000);
  await learn(0);
  expect(clock.now()).toBe(own());
});
