// Notifies the stores of one database of each other's commits: each commit sends a hint in its own transaction, and one
// connection of each store listens. A hint names the run that changed; a reader loads the change from the database.
// Events of a running run are most of all commits: a store gets their hints only for runs that it follows. A
// lost connection is opened again with growing pauses; after that, hints may have been missed, which is reported. The
// connection is checked now and then, because it may be lost without an error.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from 'pg';
import { isRunId } from '../../../kernel/ids.js';
import type { RunState } from '../../../run/statechart.js';
import type { Committed } from '../../store.js';
import { ACCESS_CHANNEL, CHANNEL, eventChannel } from '../connection/compose.js';
import type { Database } from '../connection/database.js';

// The interval of the connection check, and how long to wait for its result.
export const CHECK_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;

// Short member names: a payload is limited to 8000 bytes.
interface Hint {
  // The store that made the commit.
  readonly i: string;
  readonly r: string;
  readonly s?: RunState | undefined;
  readonly a?: string | undefined;
  // When the policy decides that question; null: never.
  readonly t?: number | null | undefined;
  readonly d?: string | undefined;
  readonly x?: true | undefined;
}

type Hinted = Pick<Committed, 'run_id' | 'status' | 'asked' | 'decides_at' | 'resolved' | 'deleted'>;

export function writeHint(
  instance: string,
  { run_id: runId, status, asked, decides_at: at, resolved, deleted }: Hinted,
): string {
  return JSON.stringify({ i: instance, r: runId, s: status, a: asked, t: at, d: resolved, x: deleted } satisfies Hint);
}

export interface HintListenerOptions {
  // The store that listens; its own hints are ignored.
  readonly instance: string;
  readonly checkMs: number;
  readonly onHint: (commit: Committed) => void;
  // Called after a reconnect: hints may have been missed.
  readonly onMissed: () => void;
  // Called when tokens, sessions or sign-in codes may have changed.
  readonly onAccess: () => void;
}

export class HintListener {
  readonly #db: Database;
  readonly #options: HintListenerOptions;
  readonly #closing = new AbortController();
  // How many readers follow each run, by channel.
  readonly #followed = new Map<string, Map<string, number>>();
  #client: Client | null = null;
  // The last statement of that connection, which runs one at a time.
  #statements: Promise<unknown> = Promise.resolve();
  #work: Promise<void> = Promise.resolve();

  constructor(db: Database, options: HintListenerOptions) {
    this.#db = db;
    this.#options = options;
  }

  // After this resolves, no hint is missed.
  async open(): Promise<void> {
    const client = await this.#db.connect();
    try {
      client.on('notification', ({ channel, payload }) => {
        if (channel === ACCESS_CHANNEL) this.#options.onAccess();
        else this.#hear(payload ?? '');
      });
      await client.query(`LISTEN ${ACCESS_CHANNEL}`);
      await client.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    // The store may have been closed while the connection was being opened.
    if (this.#closing.signal.aborted) return client.end();
    this.#client = client;
    this.#statements = Promise.resolve();
    for (const channel of this.#followed.keys()) this.#openChannel(client, channel);
    const stopChecking = this.#check(client);
    client.once('end', () => {
      stopChecking();
      this.#client = null;
      if (!this.#closing.signal.aborted) this.#work = this.#reopen();
    });
    return undefined;
  }

  // Returns the function that ends it. Earlier commits had no hint, so the first hint comes when the channel is open.
  follow(runId: string): () => void {
    const channel = eventChannel(runId);
    const runs = this.#followed.get(channel) ?? new Map<string, number>();
    runs.set(runId, (runs.get(runId) ?? 0) + 1);
    if (!this.#followed.has(channel)) {
      this.#followed.set(channel, runs);
      if (this.#client) this.#openChannel(this.#client, channel);
    }
    return () => {
      const readers = (runs.get(runId) ?? 1) - 1;
      if (readers > 0) return void runs.set(runId, readers);
      runs.delete(runId);
      if (runs.size > 0) return;
      this.#followed.delete(channel);
      if (this.#client) this.#run(this.#client, `UNLISTEN ${channel}`).catch(() => {});
    };
  }

  #run(client: Client, statement: string): Promise<unknown> {
    const done = this.#statements.then(() => client.query(statement));
    this.#statements = done.catch(() => {});
    return done;
  }

  #openChannel(client: Client, channel: string): void {
    this.#run(client, `LISTEN ${channel}`).then(
      () => {
        for (const runId of this.#followed.get(channel)?.keys() ?? [])
          this.#options.onHint({ run_id: runId, origin: 'elsewhere', ms: 0 });
      },
      // The next connection opens all channels.
      () => void client.end().catch(() => {}),
    );
  }

  #check(client: Client): () => void {
    const { checkMs } = this.#options;
    let timer: NodeJS.Timeout;
    const ask = (): void => {
      // Closes a connection that does not respond; end() does not wait for the open query.
      timer = setTimeout(() => void client.end().catch(() => {}), checkMs);
      this.#run(client, 'SELECT').then(
        () => {
          clearTimeout(timer);
          timer = setTimeout(ask, checkMs);
        },
        () => {},
      );
    };
    timer = setTimeout(ask, checkMs);
    return () => clearTimeout(timer);
  }

  async #reopen(): Promise<void> {
    for (let ms = FIRST_PAUSE_MS; !this.#closing.signal.aborted; ms = Math.min(ms * 2, LONGEST_PAUSE_MS)) {
      await pause(ms, undefined, { signal: this.#closing.signal }).catch(() => {});
      try {
        await this.open();
      } catch {
        // Still unreachable; calls of the store fail with the reason.
        continue;
      }
      if (this.#closing.signal.aborted) return;
      this.#options.onAccess();
      this.#options.onMissed();
      return;
    }
  }

  #hear(payload: string): void {
    const hint = parseHint(payload);
    if (hint === null || hint.i === this.#options.instance) return;
    const { r: runId, s: status, a: asked, t: at, d: resolved, x: deleted } = hint;
    // Any other type means "not known", which makes a reader load the question.
    const decidesAt = at === null || Number.isFinite(at) ? at : undefined;
    this.#options.onHint({
      run_id: runId,
      status,
      asked,
      decides_at: decidesAt,
      resolved,
      deleted,
      origin: 'elsewhere',
      ms: 0,
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#client?.end().catch(() => {});
    await this.#work;
  }
}

// Validates the payload: anybody who may connect can write to the channel.
function parseHint(payload: string): Hint | null {
  try {
    const hint = JSON.parse(payload) as Hint | null;
    return typeof hint?.r === 'string' && isRunId(hint.r) ? hint : null;
  } catch {
    return null;
  }
}
