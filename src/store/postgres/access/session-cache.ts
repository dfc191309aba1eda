// Sessions that this host has looked up, so that not every request waits for the database. An entry is used for at most
// two seconds, and not at all once another host has changed something. While the database cannot be read, the last
// known state applies.
import type { SessionRecord } from '../../access-store.js';

const FRESH_MS = 2000;
const MOST_ENTRIES = 10_000;

interface Entry {
  readonly session: SessionRecord;
  readonly readAt: number;
  // Entries that were read before the last notification are read again before they are used.
  readonly generation: number;
}

export class SessionCache {
  readonly #load: (sha256: string) => Promise<SessionRecord | null>;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #loading = new Map<string, Promise<SessionRecord | null>>();
  #generation = 0;

  constructor(load: (sha256: string) => Promise<SessionRecord | null>, now: () => number) {
    this.#load = load;
    this.#now = now;
  }

  // Something may have changed: every entry is read again before it is used.
  doubt(): void {
    this.#generation += 1;
  }

  forget(matches: (session: SessionRecord) => boolean): void {
    this.#generation += 1;
    for (const [sha256, { session }] of this.#entries) if (matches(session)) this.#entries.delete(sha256);
  }

  async find(sha256: string): Promise<SessionRecord | null> {
    const entry = this.#entries.get(sha256);
    if (entry && this.#isFresh(entry)) return entry.session;
    try {
      return await this.#read(sha256);
    } catch (error) {
      if (entry) return entry.session;
      throw error;
    }
  }

  // Without waiting: as last known. An entry that is no longer fresh is read again in the background.
  has(sha256: string): boolean {
    const entry = this.#entries.get(sha256);
    if (entry && !this.#isFresh(entry)) this.#read(sha256).catch(() => {});
    return entry !== undefined;
  }

  #isFresh({ readAt, generation }: Entry): boolean {
    return generation === this.#generation && this.#now() - readAt < FRESH_MS;
  }

  // A read that began before the last notification is not shared: it may have seen the state before the change.
  async #read(sha256: string): Promise<SessionRecord | null> {
    const generation = this.#generation;
    const key = `${generation} ${sha256}`;
    const reading = this.#loading.get(key) ?? this.#load(sha256);
    this.#loading.set(key, reading);
    try {
      const session = await reading;
      this.#entries.delete(sha256);
      if (session) this.#entries.set(sha256, { session, readAt: this.#now(), generation });
      if (this.#entries.size > MOST_ENTRIES) this.#entries.delete(this.#entries.keys().next().value ?? '');
      return session;
    } finally {
      this.#loading.delete(key);
    }
  }
}
