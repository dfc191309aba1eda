// Shared parts of the torture tests: the seed, and the line of figures that each prints.
import { appendFileSync } from 'node:fs';
import { seededRandom } from './seeded-random.js';

export const SEED = Number(process.env['PARLEY_SEED'] ?? 20261116);

export interface Chance {
  // A whole number below the limit.
  below(limit: number): number;
  pick<T>(items: readonly T[]): T;
}

// With such a small source, neighbouring seeds give similar first numbers: the numbers are spread out.
export function chance(...numbers: number[]): Chance {
  const random = seededRandom(numbers.reduce((state, number) => Math.imul(state ^ number, 2_654_435_761), SEED));
  random(1);
  return { below: random, pick: (items) => items[random(items.length)] as (typeof items)[number] };
}

// How often each action was done, for a page that quotes it.
export class Figures {
  readonly #form: string;
  readonly #counts = new Map<string, number>();

  constructor(form: string) {
    this.#form = form;
  }

  add(what: string, count = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
  }

  get(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  tell(): void {
    const counts = [...this.#counts].map(([what, count]) => `${count} ${what}`);
    const line = `${this.#form} (seed ${SEED}): ${counts.join(', ')}`;
    console.log(line);
    const file = process.env['PARLEY_FIGURES'];
    if (file) appendFileSync(file, `${line}\n`);
  }
}
