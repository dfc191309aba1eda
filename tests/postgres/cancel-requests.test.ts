// Cancel requests that another host leaves in the row of a run: the host that runs the run records and carries out each
// of them.
import { expect, test } from 'vitest';
import type { RaspEvent } from '../../src/rasp/event.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { openClusterBench, type ClusterBench } from '../support/cluster-bench.js';
import { Gate } from '../support/gate.js';
import { processesOf } from '../support/orchestrated.js';

const BOB: Actor = { kind: 'user', name: 'bob' };
const HANGING = { engine: 'codex', prompt: '[[events 3 10]] [[hang]]' };
const REQUEST = { at: Date.parse('2026-11-15T12:00:00.000Z'), actor: BOB };

const reload = async ({ store }: ClusterBench, id: string) => (await store.loadRun(id)) as RunRecord;
const becomes = (bench: ClusterBench, id: string) =>
  expect.poll(async () => (await reload(bench, id)).status, { timeout: 30_000 });

// Expects that the request is an event, that it ended the run, and that the row has lost its mark.
async function expectCarriedOut(bench: ClusterBench, id: string): Promise<void> {
  await becomes(bench, id).toBe('canceled');
  const events = (await bench.store.readJournal(id, 'rasp', { limit: 1000 })).map(
    (line) => JSON.parse(line) as RaspEvent,
  );
  const requests = events.filter(({ event }) => event.type === 'lifecycle.cancel.requested');
  expect(requests.map(({ data }) => data)).toEqual([{ requested_at: '2026-11-15T12:00:00.000Z', actor: BOB }]);
  expect(events.at(-1)?.data).toMatchObject({ from: 'running', to: 'canceled', actor: BOB });
  expect((await reload(bench, id)).cancel_requested).toEqual(REQUEST);
  expect(processesOf(id)).toEqual([]);
  await expect.poll(() => bench.doubts(id), { timeout: 15_000 }).toEqual([]);
  expect(bench.failures).toEqual([]);
}

test('a request for a run that another host runs stays marked in the row until that host records it', async () => {
  const gate = new Gate();
  let isHeld = false;
  const bench = await openClusterBench({
    store: (store) =>
      alterStore(store, {
        loadRun: async (runId) => {
          if (isHeld) await gate.opened;
          return store.loadRun(runId);
        },
      }),
  });
  const { run_id: id } = await bench.orchestrator.create(HANGING);
  await expect.poll(() => processesOf(id), { timeout: 20_000 }).not.toEqual([]);
  const two = await bench.stores.host('host_2');
  isHeld = true;
  await two.requestCancel(id, REQUEST);
  expect(await reload(bench, id)).toMatchObject({
    status: 'running',
    cancel_requested: { ...REQUEST, unrecorded: true },
  });
  expect((await bench.doubts(id)).filter((doubt) => doubt.startsWith('rows'))).toEqual([]);
  gate.open();
  await expectCarriedOut(bench, id);
});

test('a request for a queued run that starts afterwards is recorded and carried out by its turn', async () => {
  let two: PostgresStore | null = null;
  const bench = await openClusterBench({
    cluster: (cluster) => ({
      // The request arrives after this host has reserved the run and before the turn starts.
      claim: async (limit, except) => {
        const claimed = await cluster.claim(limit, except);
        for (const runId of claimed) await two?.requestCancel(runId, REQUEST);
        return claimed;
      },
      listCancelRequests: async () => [],
    }),
  });
  two = await bench.stores.host('host_2');
  const { run_id: id } = await bench.orchestrator.create(HANGING);
  await expectCarriedOut(bench, id);
});
