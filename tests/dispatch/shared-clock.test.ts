// The clock that hosts share, computed from database times and a monotonic clock.
import { expect, test } from 'vitest';
import { SharedClock } from '../../src/ownership/postgres/shared-clock.js';

const T0 = 1_700_000_000_000;

// The machine's clock says T0 at the start; the database differs from it.
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
])('a difference of %d ms, measured within %d ms, is not corrected', async (differsMs, tookMs) => {
  const { clock, learn, own } = scene(differsMs, tookMs);
  await learn();
  expect(clock.now()).toBe(own());
});

test('it advances alone between readings, and follows a changed database clock', async () => {
  const { clock, learn, own, step } = scene(3_600_000);
  await learn();
  await expect(clock.learn(async () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  step(60_000);
  expect(clock.now()).toBe(own() + 3_600_000);
  await learn(0);
  expect(clock.now()).toBe(own());
});
