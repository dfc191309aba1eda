// How costs grow with the number of stored runs, in the store that several hosts share (PostgreSQL): the work of the
// other store, and what every host polls.
import { singleHost } from '../../dist/ownership/single-host.js';
import { openPostgres } from '../../dist/store/postgres/connection/open-postgres.js';
import { listCancelRequests } from '../../dist/store/postgres/hosts/claims.js';
import { registerHost } from '../../dist/store/postgres/hosts/host-lease.js';
import { listLeftovers, listStranded, listUnexported } from '../../dist/store/postgres/hosts/run-files.js';
import { format } from '../lib/figures.mjs';
import { emptyPostgres, fillPostgres, isUsed } from '../lib/fill-postgres.mjs';
import { NOW } from '../lib/fill-runs.mjs';
import { isGrowing } from '../lib/growth-table.mjs';
import { openServer } from '../lib/postgres-server.mjs';
import { watchEach } from '../lib/stalls.mjs';
import { measureStore, RUN_SIZES } from '../lib/store-work.mjs';

const REPETITIONS = 9;
const POLLED = 100;
const PLACE = '/data';
const HOST = 'bench';
const SITE = { site: 'bench', place: PLACE };
const GONE_MS = 600_000;
const LEASE_MS = 3_600_000;

const POLLS = {
  'poll: queued runs to claim': ({ store }) => store.peekQueued(),
  'claim a queued run': async ({ store }) => {
    const claimed = await store.claimQueued(1, []);
    if (claimed.length !== 1) throw new Error('no queued run was claimed');
  },
  'release the claimed runs, when a host stops': ({ store }) => store.releaseStarts(),
  'poll: runs of dead hosts': ({ store }) => store.listOwnedByDead(POLLED),
  'poll: cancel requests': ({ store }) => listCancelRequests(store.database, POLLED),
  'poll: runs without exported files': ({ store }) => listUnexported(store.database, SITE, POLLED),
  'poll: runs whose host is gone': ({ store }) => listStranded(store.database, GONE_MS, POLLED),
  'poll: files of deleted runs': ({ store }) => listLeftovers(store.database, SITE, { except: [], limit: POLLED }),
  'poll: when the next question is decided': ({ store }) => store.findNextDecision(),
  'poll: expired questions to decide': ({ store }) => store.claimDecisions(POLLED),
  'poll: a delivery to send': ({ store }) => store.nextDelivery(NOW),
  'poll: when the next delivery is due': ({ store }) => store.nextDeliveryAt(),
};

export default {
  name: 'growth-postgres',
  of: 'runs',
  title: 'Stored runs: the shared store',
  description:
    'The same runs in PostgreSQL, with durable settings, on the same machine; deletions are without files. The rows ' +
    '"poll" are what each host asks every few seconds. PARLEY_GROWTH_SIZES sets other sizes, and ' +
    'PARLEY_BENCH_DATABASE_URL another server (an empty database, as a superuser).',
  sizes: RUN_SIZES,
  onceSizes: [500, 2000],
  plots: [
    {
      title: 'Everyday work with many stored runs in PostgreSQL',
      unit: 'ms',
      rows: ['/metrics', 'list', 'inbox', 'claim a queued run', 'delete a run', 'retention, for each run'],
    },
  ],
  open: async () => {
    const server = await openServer();
    // Between the sizes, everything in it is removed.
    if (await isUsed(server.url)) throw new Error('PARLEY_BENCH_DATABASE_URL: the database is not empty');
    return { ...server, close: () => server.stop() };
  },
  measure: async ({ size, record, context: { url } }) => {
    await emptyPostgres(url);
    const store = await openPostgres(url, { host: HOST, site: SITE, migrate: true });
    try {
      const info = { serves: true };
      await registerHost(store.database, { host_id: HOST, name: HOST, url: null, ...SITE, ttlMs: LEASE_MS, info });
      await fillPostgres(store, url, { count: size, place: PLACE });
      for (const [name, work] of Object.entries(POLLS))
        record(name, await watchEach(REPETITIONS, () => work({ store })));
      const ports = singleHost(store);
      const deps = { store, dataDir: PLACE, ...ports, files: { ...ports.files, layout: 'local' } };
      await measureStore({ store, size, deps }, record);
    } finally {
      await store.close();
    }
  },
  aims: (of, rows) => {
    const growing = rows.filter(isGrowing).map(({ name }) => name);
    return [
      {
        aim: 'PostgreSQL: nothing that takes more than 5 ms grows with the number of runs',
        got: Number.isNaN(of('/metrics')) ? format(Number.NaN) : growing.join(', ') || 'nothing',
        reached: growing.length === 0,
      },
    ];
  },
};
