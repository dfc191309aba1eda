// Opens what runs are kept in: the data directory alone, or with PARLEY_DATABASE_URL a PostgreSQL database that other hosts share, beside the
// data directory for their files.
import { existsSync, realpathSync } from 'node:fs';
import type { Membership } from '../dispatch/postgres/join-cluster.js';
import type { Settings } from '../host/settings.js';
import { siteAt } from '../store/postgres/site.js';
import { lockDataDir, openDataDir, openForReading, type DataDir } from '../store/sqlite/data-dir.js';
import type { Io } from './io.js';
import { writerOf } from './writer-of.js';

export interface OpenData {
  readonly data: DataDir;
  // The other hosts, where there may be some.
  readonly cluster: Membership | null;
}

export function databaseUrl({ env }: Io): string | null {
  return env['PARLEY_DATABASE_URL'] || null;
}

// Only to look; null: there is nothing yet.
export async function openToRead(path: string, io: Io): Promise<DataDir | null> {
  const url = databaseUrl(io);
  if (url === null) return openForReading(path);
  const { openPostgres } = await import('../store/postgres/open-postgres.js');
  const store = await openPostgres(url, { host: null, connections: 2 });
  return { path: existsSync(path) ? realpathSync(path) : path, store, close: () => store.close() };
}

export async function openToWrite(path: string, io: Io, settings: Settings, onFailure: (error: unknown) => void): Promise<OpenData> {
  const url = databaseUrl(io);
  if (url === null) return { data: await openDataDir(path, writerOf(io)), cluster: null };
  // Loaded when they are needed: a command on a data directory alone begins without them.
  const { openPostgres } = await import('../store/postgres/open-postgres.js');
  const { joinCluster } = await import('../dispatch/postgres/join-cluster.js');
  const isShared = settings.cluster.files === 'shared';
  // Of files that are on this disk there is one host; of shared ones, as many as there are.
  const release = isShared ? () => {} : await lockDataDir(path, writerOf(io));
  try {
    const real = realpathSync(path);
    const site = siteAt(real, settings.cluster.files);
    const store = await openPostgres(url, { host: null, site, clock: io.clock });
    try {
      const cluster = await joinCluster({ url, store, clock: io.clock, timers: io.timers, monotonicMs: () => performance.now(), onFailure }, {
        name: io.env['HOSTNAME'] || io.machine.userName, url: null, site, leaseMs: settings.cluster.lease_sec * 1000, goneMs: settings.cluster.gone_sec * 1000,
      });
      const close = async (): Promise<void> => {
        await cluster.leave();
        await store.close();
        release();
      };
      return { data: { path: real, store, close }, cluster };
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    release();
    throw error;
  }
}
