// How the CPU time of a function grows with its input. A ratio within one run does not depend on the speed of the
// machine, and CPU time does not include the time in which other processes run.
import { expect } from 'vitest';

const ROUNDS = 3;
// Other work of this process, such as garbage collection, only ever adds time: linear work gets below the limit in one
// of many rounds, quadratic work in none.
const MOST_ROUNDS = 12;
// Four times the input takes four times as long if the time is linear, and sixteen times if it is quadratic.
const GROWTH = 4;
const MOST = 10;
// Shorter times are noise.
const LEAST_MS = 2;

// Expects that `work` takes linear time. `size` is the smaller of the two inputs that it gets.
export async function expectLinear(size: number, work: (size: number) => unknown): Promise<void> {
  let small = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) small = Math.min(small, await cpuTimeMs(() => work(size)));
  small = Math.max(LEAST_MS, small);
  let large = Infinity;
  for (let round = 0; round < MOST_ROUNDS && large >= MOST * small; round += 1)
    large = Math.min(large, await cpuTimeMs(() => work(GROWTH * size)));
  const ratio = large / small;
  expect(ratio, `${GROWTH} times the input takes ${ratio.toFixed(1)} times as long`).toBeLessThan(MOST);
}

async function cpuTimeMs(work: () => unknown): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}
