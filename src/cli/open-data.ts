// Opens what runs are kept in: the data directory alone, or with PARLEY_DATABASE_URL a PostgreSQL database that other
// hosts share, beside the data directory for their files.
import { existsSync, realpathSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Membership } from '../dispatch/postgres/join-cluster.js';
import type { Clock } from '../kernel/clock.js';
import { ENGINES } from '../engines/registry.js';
import { findProgram } from '../host/machine.js';
import type { Settings } from '../host/settings.js';
import type { Database } from '../store/postgres/connection/database.js';
import { siteAt } from '../store/postgres/hosts/site.js';
import {
  lockDataDir,
  openAccess,
  openDataDir,
  openForReading,
  type AccessDir,
  type DataDir,
} from '../store/sqlite/data-dir.js';
import type { Io } from './io.js';
import { machineOf } from './machine-of.js';
import { readVersion } from './version.js';
import { hasWriter } from './writer-alive.js';
import { writerOf } from './writer-of.js';

export interface OpenData {
  readonly data: DataDir;
  // The other hosts, where there may be some.
  readonly cluster: Membership | null;
  // That of the hosts, where there may be some.
  readonly clock: Clock;
}

export interface ReadData extends DataDir {
  // Somebody is there who goes on with runs that are not at rest.
  hasWriter(): Promise<boolean>;
}

export function databaseUrl({ env }: Io): string | null {
  return env['PARLEY_DATABASE_URL'] || null;
}

// What this machine is called among the hosts.
export function hostNameOf({ env, machine }: Io): string {
  return env['HOSTNAME'] || machine.hostName;
}

// Only to look; null: there is nothing yet.
export async function openToRead(path: string, io: Io): Promise<ReadData | null> {
  const url = databaseUrl(io);
  if (url === null) {
    const data = await openForReading(path);
    return data && { ...data, hasWriter: async () => hasWriter(data.path) };
  }
  const { openPostgres } = await import('../store/postgres/connection/open-postgres.js');
  const { listLiveHosts } = await import('../store/postgres/hosts/host-lease.js');
  const { PostgresAccess } = await import('../store/postgres/access/access.js');
  const store = await openPostgres(url, { host: null, connections: 2 });
  return {
    path: existsSync(path) ? realpathSync(path) : path,
    store,
    access: new PostgresAccess(store),
    close: () => store.close(),
    // What a host leaves behind, any other takes over.
    hasWriter: async () => (await listLiveHosts(store.database)).length > 0,
  };
}

export interface OpenAccess extends AccessDir {
  // The database that hosts share; null: a data directory alone.
  readonly database: Database | null;
}

// For commands that manage tokens and sessions. Works beside a running server.
export async function openAccessTables(path: string, io: Io): Promise<OpenAccess> {
  const url = databaseUrl(io);
  if (url === null) return { ...(await openAccess(path, writerOf(io))), database: null };
  const { openPostgres } = await import('../store/postgres/connection/open-postgres.js');
  const { PostgresAccess } = await import('../store/postgres/access/access.js');
  const store = await openPostgres(url, { host: null, connections: 2 });
  return { access: new PostgresAccess(store), database: store.database, close: () => store.close() };
}

// `serves`: it stays, and plays what others have created.
export async function openToWrite(
  path: string,
  io: Io,
  settings: Settings,
  serves: boolean,
  onFailure: (error: unknown) => void,
): Promise<OpenData> {
  const url = databaseUrl(io);
  if (url === null) return { data: await openDataDir(path, writerOf(io)), cluster: null, clock: io.clock };
  // Loaded when they are needed: a command on a data directory alone begins without them.
  const { openPostgres } = await import('../store/postgres/connection/open-postgres.js');
  const { joinCluster } = await import('../dispatch/postgres/join-cluster.js');
  const { PostgresAccess } = await import('../store/postgres/access/access.js');
  const { SharedClock } = await import('../dispatch/postgres/shared-clock.js');
  const { timers } = io;
  const clock = new SharedClock(io.clock, () => performance.now());
  const { files, lease_sec: leaseSec, gone_sec: goneSec, connections } = settings.cluster;
  const opened: Undo[] = [];
  try {
    // Of files that are on this disk there is one host; of shared ones, as many as there are.
    if (files === 'host') opened.push(await lockDataDir(path, writerOf(io)));
    const real = realpathSync(path);
    const site = siteAt(real, files);
    const store = await openPostgres(url, { host: null, site, clock, connections, ownOnly: !serves });
    opened.push(() => store.close());
    const cluster = await joinCluster(
      { url, store, clock, timers, monotonicMs: () => uptime() * 1000, onFailure },
      {
        name: hostNameOf(io),
        url: null,
        site,
        leaseMs: leaseSec * 1000,
        goneMs: goneSec * 1000,
        info: { version: readVersion(), files, lease_sec: leaseSec, serves, engines: listInstalled(io, settings) },
      },
    );
    opened.push(() => cluster.leave());
    const access = new PostgresAccess(store);
    return { data: { path: real, store, access, close: () => undoAll(opened) }, cluster, clock };
  } catch (error) {
    // Why it could not be opened is what counts.
    await undoAll(opened).catch(onFailure);
    throw error;
  }
}

type Undo = () => void | Promise<void>;

// What was opened last goes first, and each of them, whatever becomes of the others.
async function undoAll(opened: Undo[]): Promise<void> {
  const last = opened.pop();
  if (!last) return;
  try {
    await last();
  } finally {
    await undoAll(opened);
  }
}

// The engines whose programs this host has, for the others to know.
function listInstalled(io: Io, settings: Settings): string[] {
  return ENGINES.filter((engine) => findProgram(engine, machineOf(io), settings).program !== null).map(
    ({ name }) => name,
  );
}
