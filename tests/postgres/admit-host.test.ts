// Which hosts may share a database: not those with different places of files, or with the same disk under two names.
import { expect, test } from 'vitest';
import { admitHost } from '../../src/ownership/postgres/admit-host.js';
import { systemTimers } from '../../src/process/timers.js';
import { registerHost, type NewHost } from '../../src/store/postgres/hosts/host-lease.js';
import type { Site } from '../../src/store/postgres/hosts/site.js';
import { withStores } from '../support/postgres-stores.js';

const LEASE_MS = 1500;

// With one existing host that may renew its lease.
async function withHost(site: Site, { renews }: { renews: boolean }) {
  const stores = await withStores();
  const { database } = await stores.store();
  const host: NewHost = { host_id: 'host_a', name: 'a', url: null, ttlMs: LEASE_MS, ...site };
  const lease = await registerHost(database, host);
  const renewing = renews ? setInterval(() => void lease.renew().catch(() => {}), LEASE_MS / 3) : undefined;
  return {
    stores,
    admit: (name: string, other: Site) =>
      admitHost(database, systemTimers, { name, ...other }).finally(() => clearInterval(renewing)),
  };
}

test.each<[string, Site, string, Site, string]>([
  [
    'shares its files, while the others do not',
    { site: null, place: '/data' },
    'b',
    { site: 'site_b', place: '/data' },
    'cluster.files "shared"',
  ],
  [
    'has files of its own, while the others share theirs',
    { site: 'site_a', place: '/data' },
    'b',
    { site: null, place: '/data' },
    'cluster.files "host"',
  ],
  [
    'sees the shared files under another path',
    { site: null, place: '/data' },
    'b',
    { site: null, place: '/mnt/data' },
    'under the same path',
  ],
  [
    'has a copy of the disk of another',
    { site: 'site_a', place: '/data' },
    'b',
    { site: 'site_a', place: '/data' },
    'two data directories have the same file "site"',
  ],
  [
    'has a copy of the disk on the same machine',
    { site: 'site_a', place: '/data' },
    'a',
    { site: 'site_a', place: '/copy' },
    'two data directories have the same file "site"',
  ],
])('a host is refused that %s', async (_, there, name, here, message) => {
  const { admit } = await withHost(there, { renews: true });
  await expect(admit(name, here)).rejects.toMatchObject({
    code: 'HOSTS_DIFFER',
    message: expect.stringContaining(message) as string,
  });
});

test.each<[string, Site, string, Site]>([
  ['a second host of files that are shared', { site: null, place: '/data' }, 'b', { site: null, place: '/data' }],
  ['a second host with a disk of its own', { site: 'site_a', place: '/data' }, 'b', { site: 'site_b', place: '/data' }],
])('%s is admitted at once', async (_, there, name, here) => {
  const { stores, admit } = await withHost(there, { renews: true });
  await admit(name, here);
  expect(await stores.query(`SELECT FROM parley.hosts WHERE lease_until > clock_timestamp()`)).toHaveLength(1);
});

test('a host that was started again is admitted at once, and the one that it was has no lease any more', async () => {
  const { stores, admit } = await withHost({ site: 'site_a', place: '/data' }, { renews: false });
  await admit('a', { site: 'site_a', place: '/data' });
  expect(await stores.query(`SELECT FROM parley.hosts WHERE lease_until > clock_timestamp()`)).toEqual([]);
});

test('one restarted under another name or with other settings waits for its previous lease to expire', async () => {
  const { stores, admit } = await withHost({ site: 'site_a', place: '/data' }, { renews: false });
  const leased = () => stores.query(`SELECT FROM parley.hosts WHERE lease_until > clock_timestamp()`);
  expect(await leased()).toHaveLength(1);
  await admit('renamed', { site: null, place: '/data' });
  expect(await leased()).toEqual([]);
});
