// A program must not write to a database whose events promise more than it knows: each version of the fold comes with
// versions of both databases, which earlier programs refuse.
import { expect, test } from 'vitest';
import { RUN_FOLD_VERSION } from '../../src/run/run-fold.js';
import { MIGRATIONS as POSTGRES } from '../../src/store/postgres/connection/migrations.js';
import { MIGRATIONS as SQLITE } from '../../src/store/sqlite/migrations.js';

// The first database versions whose programs write each version of the fold.
const DATABASES: Readonly<Record<number, { readonly sqlite: number; readonly postgres: number }>> = {
  1: { sqlite: 10, postgres: 7 },
};

test('each version of the fold has its own database versions, so that earlier programs refuse its data', () => {
  const entries = Object.values(DATABASES);
  expect(Object.keys(DATABASES).map(Number)).toEqual(entries.map((_, index) => index + 1));
  expect(RUN_FOLD_VERSION).toBe(entries.length);
  for (const [steps, of] of [
    [SQLITE, 'sqlite'],
    [POSTGRES, 'postgres'],
  ] as const) {
    const firsts = entries.map((entry) => entry[of]);
    expect(firsts).toEqual([...new Set(firsts)].toSorted((a, b) => a - b));
    expect(steps.map(({ version }) => version)).toEqual(expect.arrayContaining(firsts));
  }
});
