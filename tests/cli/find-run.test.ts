// Runs by the names that people give them: the whole id, its end, its beginning, "last".
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { findRunId, shortenIds } from '../../src/cli/reading/find-run.js';
import type { RunFilter, Store } from '../../src/store/store.js';
import { runs } from '../support/runs.js';

// The part of a store that finding needs; the real ones are checked by their conformance tests.
function storeOf(ids: readonly string[], waiting: readonly string[] = []): Store {
  const newestFirst = ids.toSorted().toReversed();
  return {
    loadRun: async (id: string) => (ids.includes(id) ? { run_id: id } : null),
    listRunIds: async ({ status, limit }: RunFilter) =>
      newestFirst.filter((id) => status === undefined || waiting.includes(id)).slice(0, limit),
    listByTail: async (tails: readonly string[]) => ids.filter((id) => tails.includes(id.slice(-6))),
    listByPrefix: async (prefix: string, limit: number) =>
      newestFirst.filter((id) => id.startsWith(prefix)).slice(0, limit),
  } as unknown as Store;
}

const A = 'run_01M7NH9E81EYJ9SYR536V8BP71';
const B = 'run_01M7NH9E82EYJ9SYR536V8BP72';
const C = 'run_01M8AAAAAAAAAAAAAAAAV8BP72';

test('a run is found by its id, by its end in any case, and by its beginning', async () => {
  const store = storeOf([A, B]);
  for (const name of [A, '6V8BP71', 'v8bp71', 'run_01M7NH9E81', '01m7nh9e81'])
    expect(await findRunId(store, name)).toBe(A);
});

test('a name of several runs is refused with all of them, and one of none with the way to the list', async () => {
  const store = storeOf([A, B, C]);
  await expect(findRunId(store, 'V8BP72')).rejects.toThrow(`"V8BP72" is ambiguous; it matches 2 runs: ${B}, ${C}`);
  await expect(findRunId(store, '01M7NH')).rejects.toThrow('is ambiguous; it matches 2 runs');
  await expect(findRunId(store, 'ZZZZZZ')).rejects.toThrow('There is no run "ZZZZZZ". parley ls lists the runs.');
  await expect(findRunId(store, 'BP71')).rejects.toThrow('at least 6 characters of its id after run_');
});

test('last is the newest run, or the newest that waits', async () => {
  const store = storeOf([A, B, C], [A, B]);
  expect(await findRunId(store, 'last')).toBe(C);
  expect(await findRunId(store, 'last', { last: 'waiting' })).toBe(B);
  await expect(findRunId(storeOf([A]), 'last', { last: 'waiting' })).rejects.toThrow('No run is waiting for you.');
  await expect(findRunId(storeOf([]), 'last')).rejects.toThrow('There is no run yet.');
});

test('short ids have at least six characters, and each finds its run', async () => {
  const names = await shortenIds(storeOf([A, B, C]), [A, B]);
  expect(names.get(A)).toBe('V8BP71');
  const letters = fc
    .string({ unit: fc.constantFrom('0', '1'), minLength: 26, maxLength: 26 })
    .map((text) => `run_${text}`);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(letters, { minLength: 1, maxLength: 20 }), async (ids) => {
      const store = storeOf(ids);
      for (const [id, name] of await shortenIds(store, ids.slice(0, 5))) {
        expect(name.length).toBeGreaterThanOrEqual(6);
        expect(await findRunId(store, name)).toBe(id);
      }
    }),
    { numRuns: runs(100) },
  );
});
