// How the time of a search grows with its input, as a ratio within one run: a machine that is slow is slow for both.
import { expect } from 'vitest';

const ROUNDS = 3;
// Four times the input takes four times as long where the time is linear, and sixteen times where it is quadratic.
const GROWTH = 4;
const MOST = 10;
// What is shorter is noise.
const LEAST_MS = 2;

// `times` is how often the smaller input repeats its piece.
export function expectLinear(times: number, search: (times: number) => unknown): void {
  const small = Math.max(
    LEAST_MS,
    shortestOf(() => search(times)),
  );
  const large = shortestOf(() => search(GROWTH * times));
  expect(large / small, `${GROWTH} times the input takes ${(large / small).toFixed(1)} times as long`).toBeLessThan(
    MOST,
  );
}

function shortestOf(work: () => unknown): number {
  let shortest = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = performance.now();
    work();
    shortest = Math.min(shortest, performance.now() - from);
  }
  return shortest;
}
