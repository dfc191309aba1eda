// Turns that a host lost without losing its lease: the response to their start was lost, or the database lost the data.
// Each is ended, nothing runs twice, and the engine output is in the journal. A short outage ends no turn.
import { newStatus } from '../store/conformance.js';
import { expect, test } from 'vitest';
import { LostConnectionError } from '../../src/store/postgres/connection/lost-connection.js';
import type { RunRecord } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { openClusterBench, type ClusterBench } from '../support/cluster-bench.js';
import { processesOf } from '../support/orchestrated.js';

const statusOf = async ({ store }: ClusterBench, id: string) => ((await store.loadRun(id)) as RunRecord).status;
const becomes = (bench: ClusterBench, id: string) => expect.poll(() => statusOf(bench, id), { timeout: 30_000 });
const away = () => new LostConnectionError('the database cannot be reached');

// The first calls find no database.
function failing(times: number): () => void {
  let left = times;
  return () => {
    left -= 1;
    if (left >= 0) throw away();
  };
}

test('a turn whose start was stored but not confirmed to its host is ended by that host at its next poll', async () => {
  let isLost = false;
  const bench = await openClusterBench({
    store: (store) =>
      alterStore(store, {
        append: async (change) => {
          const outcome = await store.append(change);
          if (newStatus(change) !== 'running' || isLost) return outcome;
          isLost = true;
          throw away();
        },
      }),
  });
  const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[answer x]]' });
  await becomes(bench, id).toBe('failed');
  expect(await bench.store.loadRun(id)).toMatchObject({
    error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    epoch: 1,
    attempt_number: 1,
  });
  // Its lease never expired.
  expect(await bench.stores.query('SELECT FROM parley.hosts')).toHaveLength(1);
  expect(processesOf(id)).toEqual([]);
  await expect.poll(() => bench.doubts(id), { timeout: 15_000 }).toEqual([]);
});

test('events lost when an older copy replaced the database are restored from the logs when the run ends', async () => {
  const bench = await openClusterBench();
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[events 40 50]] [[sleep 1500]] [[events 40 50]] [[sleep 2000]] [[events 40 50]] [[hang]]',
  });
  const stored = async () => ((await bench.store.loadRun(id)) as RunRecord).heads.rasp_seq;
  await expect.poll(stored, { timeout: 20_000 }).toBeGreaterThan(40);
  await bench.stores.query('CREATE TABLE earlier AS SELECT * FROM parley.runs');
  const earlier = await stored();
  await expect.poll(stored, { timeout: 20_000 }).toBeGreaterThan(80);
  const before = await stored();
  await bench.stores.query(
    `WITH back AS (
       UPDATE parley.runs AS run
       SET rasp_seq = earlier.rasp_seq, fcmp_seq = earlier.fcmp_seq, ts = earlier.ts, digest = earlier.digest,
         last_commit = earlier.last_commit
       FROM earlier
       RETURNING run.run_id
     )
     DELETE FROM parley.segments
     USING earlier
     WHERE seq_from > CASE protocol WHEN 'rasp' THEN earlier.rasp_seq ELSE earlier.fcmp_seq END`,
  );
  await becomes(bench, id).toBe('failed');
  expect(processesOf(id)).toEqual([]);
  expect(before).toBeGreaterThan(earlier);
  expect(await stored()).toBeGreaterThanOrEqual(before);
  await expect.poll(() => bench.doubts(id), { timeout: 15_000 }).toEqual([]);
});

test('an outage longer than the read retries ends no turn of a resident engine while the lease holds', async () => {
  const [beforeTurn, beforeWaiting] = [failing(2), failing(2)];
  const bench = await openClusterBench({
    store: (store) =>
      alterStore(store, {
        readJournal: async (...args) => {
          beforeTurn();
          return store.readJournal(...args);
        },
      }),
    cluster: (cluster) => ({
      hold: async (runId) => {
        beforeWaiting();
        return cluster.hold(runId);
      },
    }),
  });
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex-app-server',
    prompt: '[[approve ls]] [[done 1]]',
    execution_mode: 'interactive',
  });
  await becomes(bench, id).toBe('waiting_user');
  expect(await bench.stores.query('SELECT resident FROM parley.runs')).toEqual([{ resident: bench.membership.hostId }]);
  expect(bench.failures).toEqual([]);
  await bench.orchestrator.cancel(id);
  await expect.poll(() => bench.doubts(id), { timeout: 15_000 }).toEqual([]);
});
