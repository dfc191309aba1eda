// Runs fuzz cases, each with its own random source. A failure names the seed and the case, so that it can be run alone.
import { seededRandom } from './seeded-random.js';

export const SEED = Number(process.env['PARLEY_SEED'] ?? 20261116);
// How many times as many cases as in the short form.
const TIMES = Number(process.env['PARLEY_FUZZ_TIMES'] ?? 1);
// For the test that runs them.
export const PATIENCE_MS = 120_000 * Math.max(1, TIMES);
// Runs only this case.
const ONLY = process.env['PARLEY_FUZZ_CASE'];

export type Random = ReturnType<typeof seededRandom>;

export async function fuzz(
  name: string,
  cases: number,
  play: (random: Random, index: number) => void | Promise<void>,
): Promise<void> {
  for (let index = 0; index < cases * TIMES; index += 1) {
    if (ONLY !== undefined && index !== Number(ONLY)) continue;
    try {
      await play(seededRandom(seedOf(name, index)), index);
    } catch (error) {
      if (error instanceof Error)
        error.message = `PARLEY_SEED=${SEED} PARLEY_FUZZ_CASE=${index} (${name}): ${error.message}`;
      throw error;
    }
  }
}

// Far apart for neighbours: similar seeds give similar first numbers.
function seedOf(name: string, index: number): number {
  let hash = SEED >>> 0;
  for (const char of `${name} ${index}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0;
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)] as T;
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
