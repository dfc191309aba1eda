// Several hosts at once: each seq is written once, each request makes one run, each session has one running run.
import { expect, test } from 'vitest';
import { T0, change, flush, newRun } from '../store/conformance.js';
import { create, withStores } from '../support/postgres-stores.js';
import type { RunRecord } from '../../src/store/store.js';

test('of two hundred commits of two stores exactly one wins each seq, whichever way it is committed', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.store(), await stores.store()];
  let run = await create(one);
  const wins = [0, 0];
  for (let round = 0; round < 100; round += 1) {
    const seq = run.heads.rasp_seq + 1;
    const journal = flush(seq, 1, round % 2 === 0 ? run.heads.fcmp_seq + 1 : null, T0 + 100 + round);
    const outcomes = await Promise.all([
      one.append(change(run, { journal })),
      two.append(change(run, round % 3 === 0 ? { journal, set: { attempt_number: round + 2 } } : { journal })),
    ]);
    expect(outcomes.map((outcome) => (outcome.committed ? 'committed' : outcome.reason)).toSorted()).toEqual([
      'committed',
      'seq',
    ]);
    const winner = outcomes.findIndex((outcome) => outcome.committed);
    wins[winner] = (wins[winner] ?? 0) + 1;
    run = (await one.loadRun(run.run_id)) as RunRecord;
    expect(run.heads).toEqual((outcomes[winner] as { heads: unknown }).heads);
  }
  expect(wins[0]! + wins[1]!).toBe(100);
  expect(await two.recomputeDigest(run.run_id)).toBe(run.heads.digest);
  expect(
    (await two.readJournal(run.run_id, 'rasp', { limit: 1000 })).map(
      (line) => (JSON.parse(line) as { seq: number }).seq,
    ),
  ).toEqual(Array.from({ length: 102 }, (_, index) => index + 1));
});

test('of two hundred commits that are sent at once exactly one is stored', async () => {
  const stores = await withStores();
  const both = [await stores.store(), await stores.store()];
  const run = await create(both[0]!);
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      both[index % 2]!.append(change(run, { journal: flush(3, 1, null, T0 + 100 + index) })),
    ),
  );
  expect(outcomes.filter((outcome) => outcome.committed)).toHaveLength(1);
  expect(outcomes.filter((outcome) => !outcome.committed && outcome.reason !== 'seq')).toEqual([]);
  expect(await both[0]!.readJournal(run.run_id, 'rasp', { limit: 10 })).toHaveLength(3);
});

test('a request that two hosts create at once makes one run, which both return', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.store(), await stores.store()];
  for (let number = 1; number <= 25; number += 1) {
    const both = await Promise.all([
      one.createRun(newRun(number, { run_id: `run_A${number}` })),
      two.createRun(newRun(number, { run_id: `run_B${number}` })),
    ]);
    expect(both.map((outcome) => (outcome.created ? 'created' : outcome.reason)).toSorted()).toEqual([
      'created',
      'known',
    ]);
    const ids = both.map((outcome) => ('run' in outcome ? outcome.run.run_id : ''));
    expect(ids[0]).toBe(ids[1]);
  }
  expect(await one.listQueued(100)).toHaveLength(25);
});

test('the queue takes exactly its limit, and a session one run, however many hosts create runs at once', async () => {
  const stores = await withStores();
  const both = [await stores.store(), await stores.store()];
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, index) => both[index % 2]!.createRun(newRun(index + 1, { queue_limit: 7 }))),
  );
  expect(outcomes.filter((outcome) => outcome.created)).toHaveLength(7);
  const home = '/data/runs/run_0001/home';
  const handle = {
    engine: 'codex',
    handle_type: 'session_id',
    handle_value: 'x',
    cwd: '/work',
    home,
    created_at_attempt: 1,
  } as const;
  const continued = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      both[index % 2]!.createRun(
        newRun(100 + index, { handle, spec: { ...newRun(1).spec, home, continue_from: 'run_0001' } }),
      ),
    ),
  );
  expect(continued.map((outcome) => (outcome.created ? 'created' : outcome.reason)).toSorted()).toEqual([
    'created',
    ...Array.from({ length: 19 }, () => 'session_in_use'),
  ]);
});
