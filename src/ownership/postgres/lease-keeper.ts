// Keeps the lease of this host. While it is held, it is renewed every third of its duration. If it expires, the host
// ends all its work and then registers a new lease. The database decides whether the lease has expired; while the
// database cannot be reached, the time since the last renewal does.
import { randomUUID } from 'node:crypto';
import { pause, type Timers } from '../../process/timers.js';
import { forgiveCrashes } from '../../store/postgres/hosts/claims.js';
import type { NewHost } from '../../store/postgres/hosts/host-lease.js';
import { registerHost, type HostLease } from '../../store/postgres/hosts/host-lease.js';
import type { Database } from '../../store/postgres/connection/database.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';

export interface KeeperDeps {
  readonly store: PostgresStore;
  // The connection that renews the lease.
  readonly connection: Database;
  readonly timers: Timers;
  // A monotonic clock that also advances while the process is stopped or the machine sleeps.
  readonly monotonicMs: () => number;
  readonly onFailure: (error: unknown) => void;
  readonly onRenewed?: () => void;
}

interface KeptLease {
  readonly host: Omit<NewHost, 'host_id'>;
  readonly lease: HostLease;
  readonly registeredAt: number;
}

const RETRY_MS = 500;

export class LeaseKeeper {
  readonly #deps: KeeperDeps;
  #host: Omit<NewHost, 'host_id'>;
  readonly #closing = new AbortController();
  readonly #lostListeners: (() => Promise<void>)[] = [];
  #lease: HostLease;
  // When the last successful renewal started.
  #renewedAt: number;
  // When this lease was registered.
  #registeredAt: number;
  #work: Promise<void> = Promise.resolve();
  #isHeld = true;

  private constructor(deps: KeeperDeps, { host, lease, registeredAt }: KeptLease) {
    this.#deps = deps;
    this.#host = host;
    this.#lease = lease;
    this.#renewedAt = registeredAt;
    this.#registeredAt = registeredAt;
  }

  static async open(deps: KeeperDeps, host: Omit<NewHost, 'host_id'>): Promise<LeaseKeeper> {
    const registeredAt = deps.monotonicMs();
    const lease = await register(deps, host);
    const keeper = new LeaseKeeper(deps, { host, lease, registeredAt });
    keeper.#work = keeper.#keep();
    return keeper;
  }

  get hostId(): string {
    return this.#lease.host_id;
  }

  // How long this host has held its lease without interruption.
  get heldMs(): number {
    return this.#isHeld ? this.#deps.monotonicMs() - this.#registeredAt : 0;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  async setUrl(url: string): Promise<void> {
    this.#host = { ...this.#host, url };
    await this.#lease.setUrl(url);
  }

  get mayRun(): boolean {
    return this.#isHeld && this.#deps.monotonicMs() - this.#renewedAt < this.#host.ttlMs;
  }

  onLost(listener: () => Promise<void>): void {
    this.#lostListeners.push(listener);
  }

  async #keep(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await pause(this.#deps.timers, this.#host.ttlMs / 3, signal);
      if (signal.aborted) return;
      if (!(await this.#renew())) await this.#replace();
    }
  }

  // Resolves to false if the lease has expired.
  async #renew(): Promise<boolean> {
    const { monotonicMs, timers, onFailure } = this.#deps;
    const { signal } = this.#closing;
    for (let isReported = false; !signal.aborted;) {
      const startedAt = monotonicMs();
      // In the database the lease started at this time or later.
      if (startedAt - this.#renewedAt >= this.#host.ttlMs) return false;
      try {
        if (!(await within(this.#lease.renew(), this.#renewedAt + this.#host.ttlMs - startedAt, timers))) return false;
        this.#renewedAt = startedAt;
        this.#deps.onRenewed?.();
        // The process may have been suspended since it sent the query.
        return this.mayRun;
      } catch (error) {
        if (!isReported) onFailure(error);
        isReported = true;
      }
      await pause(timers, RETRY_MS, signal);
    }
    return true;
  }

  async #replace(): Promise<void> {
    const { timers, monotonicMs, onFailure } = this.#deps;
    const { signal } = this.#closing;
    this.#isHeld = false;
    const lost = this.hostId;
    onFailure(new Error(`host ${lost} lost its lease; stopping its running turns`));
    await Promise.all(this.#lostListeners.map((listener) => listener().catch(onFailure)));
    while (!signal.aborted) {
      const startedAt = monotonicMs();
      try {
        this.#lease = await register(this.#deps, this.#host);
        this.#renewedAt = startedAt;
        this.#registeredAt = startedAt;
        this.#isHeld = true;
        await forgiveCrashes(this.#deps.connection, lost).catch(onFailure);
        return;
      } catch {
        // The database is still unreachable, which was already reported.
      }
      await pause(timers, RETRY_MS, signal);
    }
  }

  // Call it only after all work of this host has ended.
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#work;
    if (this.#isHeld) await this.#lease.release().catch(this.#deps.onFailure);
  }
}

async function register({ store, connection }: KeeperDeps, host: Omit<NewHost, 'host_id'>): Promise<HostLease> {
  const lease = await registerHost(connection, { ...host, host_id: `host_${randomUUID()}` });
  store.become(lease.host_id);
  return lease;
}

// Rejects if the result does not arrive in time.
async function within<T>(result: Promise<T>, ms: number, timers: Timers): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = timers.set(ms, () => reject(new Error('the database did not answer in time')));
    result
      .then(resolve, reject)
      .finally(cancel)
      .catch(() => {});
  });
}
