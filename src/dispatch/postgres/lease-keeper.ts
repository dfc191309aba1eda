// Keeps the lease of this host: `held` → renewed in time → `held`; or over → `lost` → everything of it has ended →
// another lease → `held`. Whether it is over is said by the database; if that cannot be reached, by how long ago it was
// last renewed.
import { randomUUID } from 'node:crypto';
import { pause, type Timers } from '../../process/timers.js';
import { forgiveCrashes } from '../../store/postgres/hosts/claims.js';
import type { NewHost } from '../../store/postgres/hosts/host-lease.js';
import { registerHost, type HostLease } from '../../store/postgres/hosts/host-lease.js';
import type { Database } from '../../store/postgres/connection/database.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';

export interface KeeperDeps {
  readonly store: PostgresStore;
  // What the lease is renewed on.
  readonly connection: Database;
  readonly timers: Timers;
  // Time that only goes on, also while the process is stopped or the machine sleeps.
  readonly monotonicMs: () => number;
  readonly onFailure: (error: unknown) => void;
  readonly onRenewed?: () => void;
}

const RETRY_MS = 500;

export class LeaseKeeper {
  readonly #deps: KeeperDeps;
  #host: Omit<NewHost, 'host_id'>;
  readonly #closing = new AbortController();
  readonly #losers: (() => Promise<void>)[] = [];
  #lease: HostLease;
  // When the last renewal that counted began.
  #since: number;
  // When this lease began.
  #registered: number;
  #work: Promise<void> = Promise.resolve();
  #isHeld = true;

  private constructor(deps: KeeperDeps, host: Omit<NewHost, 'host_id'>, lease: HostLease, since: number) {
    this.#deps = deps;
    this.#host = host;
    this.#lease = lease;
    this.#since = since;
    this.#registered = since;
  }

  static async open(deps: KeeperDeps, host: Omit<NewHost, 'host_id'>): Promise<LeaseKeeper> {
    const since = deps.monotonicMs();
    const lease = await register(deps, host);
    const keeper = new LeaseKeeper(deps, host, lease, since);
    keeper.#work = keeper.#keep();
    return keeper;
  }

  get hostId(): string {
    return this.#lease.host_id;
  }

  // How long this host has been there, without a break.
  get heldMs(): number {
    return this.#isHeld ? this.#deps.monotonicMs() - this.#registered : 0;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  async setUrl(url: string): Promise<void> {
    this.#host = { ...this.#host, url };
    await this.#lease.setUrl(url);
  }

  get mayPlay(): boolean {
    return this.#isHeld && this.#deps.monotonicMs() - this.#since < this.#host.ttlMs;
  }

  onLost(listener: () => Promise<void>): void {
    this.#losers.push(listener);
  }

  async #keep(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await pause(this.#deps.timers, this.#host.ttlMs / 3, signal);
      if (signal.aborted) return;
      if (!(await this.#renew())) await this.#replace();
    }
  }

  // False: the lease is over.
  async #renew(): Promise<boolean> {
    const { monotonicMs, timers, onFailure } = this.#deps;
    const { signal } = this.#closing;
    for (let isTold = false; !signal.aborted;) {
      const begun = monotonicMs();
      // It began to count in the database at this time or later.
      if (begun - this.#since >= this.#host.ttlMs) return false;
      try {
        if (!(await within(this.#lease.renew(), this.#since + this.#host.ttlMs - begun, timers))) return false;
        this.#since = begun;
        this.#deps.onRenewed?.();
        // The process may have been stopped since it asked.
        return this.mayPlay;
      } catch (error) {
        if (!isTold) onFailure(error);
        isTold = true;
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
    onFailure(new Error(`the lease of host ${this.hostId} is over: what it was at is ended`));
    await Promise.all(this.#losers.map((lose) => lose().catch(onFailure)));
    while (!signal.aborted) {
      const begun = monotonicMs();
      try {
        this.#lease = await register(this.#deps, this.#host);
        this.#since = begun;
        this.#registered = begun;
        this.#isHeld = true;
        await forgiveCrashes(this.#deps.connection, lost).catch(onFailure);
        return;
      } catch {
        // Still away; that was told.
      }
      await pause(timers, RETRY_MS, signal);
    }
  }

  // Nothing of this host may be at work any more.
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

// An answer that comes too late is none.
async function within<T>(answer: Promise<T>, ms: number, timers: Timers): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = timers.set(ms, () => reject(new Error('the database did not answer in time')));
    answer
      .then(resolve, reject)
      .finally(cancel)
      .catch(() => {});
  });
}
