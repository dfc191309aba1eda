// Opens the storage of runs: the data directory alone, or with PARLEY_DATABASE_URL a shared PostgreSQL database plus
// the data directory for files.
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { uptime } from 'node:os';
import type { DispatchHandlers } from '../dispatch/dispatch.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { HostPorts } from '../ownership/ownership.js';
import type { Membership } from '../ownership/postgres/join-cluster.js';
import { singleHost } from '../ownership/single-host.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { ENGINES } from '../engines/registry.js';
import { findProgram } from '../machine/programs/find-program.js';
import type { Settings } from '../settings/settings.js';
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
  // The cluster of hosts; null without a shared database.
  readonly cluster: Membership | null;
  // How this host shares runs and files with others.
  readonly ports: HostPorts & Pick<OrchestratorDeps, 'createDispatch'>;
  // The clock that the hosts share, or the local clock.
  readonly clock: Clock;
}

export interface ReadData extends DataDir {
  // Whether a process exists that continues queued and running runs.
  hasWriter(): Promise<boolean>;
}

export function databaseUrl({ env }: Io): string | null {
  return env['PARLEY_DATABASE_URL'] || null;
}

// The name of this machine among the hosts.
export function hostNameOf({ env, machine }: Io): string {
  return env['HOSTNAME'] || machine.hostName;
}

// Opens the storage for reading; null if there is none yet.
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
    // Any live host takes over the runs of one that exited.
    hasWriter: async () => (await listLiveHosts(store.database)).length > 0,
  };
}

// Counts the totals of the metrics again. A data directory must have no other writer.
export async function recountTotals(path: string, io: Io): Promise<void> {
  const url = databaseUrl(io);
  if (url === null) {
    // Opening it to write would create it.
    if (!existsSync(join(path, 'parley.db'))) return;
    const data = await openDataDir(path, writerOf(io));
    try {
      return await data.store.recountTotals();
    } finally {
      await data.close();
    }
  }
  const { openPostgres } = await import('../store/postgres/connection/open-postgres.js');
  const store = await openPostgres(url, { host: null, connections: 1 });
  try {
    await store.recountTotals();
  } finally {
    await store.close();
  }
}

export interface OpenAccess extends AccessDir {
  // The shared database; null for a data directory alone.
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

export interface WriteOptions {
  readonly settings: Settings;
  // The process is a server: it also executes runs that others have created.
  readonly serves: boolean;
  readonly log: Log;
}

export async function openToWrite(path: string, io: Io, { settings, serves, log }: WriteOptions): Promise<OpenData> {
  const onFailure = (error: unknown): void => log.error(error);
  const url = databaseUrl(io);
  if (url === null) {
    const data = await openDataDir(path, writerOf(io));
    return { data, cluster: null, ports: singleHost(data.store), clock: io.clock };
  }
  // Loaded on demand: a command on a data directory alone starts faster without them.
  const { openPostgres } = await import('../store/postgres/connection/open-postgres.js');
  const { joinCluster } = await import('../ownership/postgres/join-cluster.js');
  const { PostgresAccess } = await import('../store/postgres/access/access.js');
  const { SharedClock } = await import('../ownership/postgres/shared-clock.js');
  const { PostgresDispatch } = await import('../dispatch/postgres/postgres-dispatch.js');
  const { timers } = io;
  const clock = new SharedClock(io.clock, () => performance.now());
  const { files, lease_sec: leaseSec, gone_sec: goneSec, connections } = settings.cluster;
  const opened: Undo[] = [];
  try {
    // Local files have one host, so it takes the lock. Shared files may have several hosts.
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
    const ports = {
      ownership: cluster,
      peers: cluster,
      files: cluster,
      createDispatch: (handlers: DispatchHandlers, slots: number) =>
        new PostgresDispatch({ store, ownership: cluster, clock, timers }, handlers, slots),
    };
    return { data: { path: real, store, access, close: () => undoAll(opened) }, cluster, ports, clock };
  } catch (error) {
    // A failure to clean up must not hide why the directory could not be opened.
    await undoAll(opened).catch(onFailure);
    throw error;
  }
}

type Undo = () => void | Promise<void>;

// Undoes in reverse order, and continues when one of the steps fails.
async function undoAll(opened: Undo[]): Promise<void> {
  const last = opened.pop();
  if (!last) return;
  try {
    await last();
  } finally {
    await undoAll(opened);
  }
}

// The engines installed on this host, published to the other hosts.
function listInstalled(io: Io, settings: Settings): string[] {
  return ENGINES.filter((engine) => findProgram(engine, machineOf(io), settings).program !== null).map(
    ({ name }) => name,
  );
}
