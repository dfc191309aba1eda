// Tells of commits between the stores on one database: each commit leaves a hint in its own transaction, and one
// connection of each store listens. A hint says that something changed, not what: whoever wants to know reads it. A
// connection that is lost is made again, later and later; once it is back, hints may have been missed, and that is
// told. One that says nothing may be lost without a word: it is asked now and then.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from 'pg';
import { isRunId } from '../../../kernel/ids.js';
import type { RunState } from '../../../run/statechart.js';
import type { Committed } from '../../store.js';
import { ACCESS_CHANNEL, CHANNEL } from '../connection/compose.js';
import type { Database } from '../connection/database.js';

// Between questions to the connection, and for their answer.
export const CHECK_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;

// In short words: a payload is smaller than 8000 bytes.
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

export class HintListener {
  readonly #db: Database;
  readonly #instance: string;
  readonly #onHint: (commit: Committed) => void;
  readonly #onMissed: () => void;
  readonly #onAccess: () => void;
  readonly #checkMs: number;
  readonly #closing = new AbortController();
  #client: Client | null = null;
  #work: Promise<void> = Promise.resolve();

  constructor(
    db: Database,
    instance: string,
    onHint: (commit: Committed) => void,
    onMissed: () => void,
    checkMs: number,
    onAccess: () => void = () => {},
  ) {
    this.#db = db;
    this.#instance = instance;
    this.#onHint = onHint;
    this.#onMissed = onMissed;
    this.#checkMs = checkMs;
    this.#onAccess = onAccess;
  }

  // Once this resolves no hint is missed.
  async open(): Promise<void> {
    const client = await this.#db.connect();
    try {
      client.on('notification', ({ channel, payload }) => {
        if (channel === ACCESS_CHANNEL) this.#onAccess();
        else this.#hear(payload ?? '');
      });
      await client.query(`LISTEN ${ACCESS_CHANNEL}`);
      await client.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    // It may have been closed while it was being opened.
    if (this.#closing.signal.aborted) return client.end();
    this.#client = client;
    const stopChecking = this.#check(client);
    client.once('end', () => {
      stopChecking();
      this.#client = null;
      if (!this.#closing.signal.aborted) this.#work = this.#reopen();
    });
    return undefined;
  }

  #check(client: Client): () => void {
    let timer: NodeJS.Timeout;
    const ask = (): void => {
      // Ended in the middle of a question, it does not wait for an answer.
      timer = setTimeout(() => void client.end().catch(() => {}), this.#checkMs);
      client.query('SELECT').then(
        () => {
          clearTimeout(timer);
          timer = setTimeout(ask, this.#checkMs);
        },
        () => {},
      );
    };
    timer = setTimeout(ask, this.#checkMs);
    return () => clearTimeout(timer);
  }

  async #reopen(): Promise<void> {
    for (let ms = FIRST_PAUSE_MS; !this.#closing.signal.aborted; ms = Math.min(ms * 2, LONGEST_PAUSE_MS)) {
      await pause(ms, undefined, { signal: this.#closing.signal }).catch(() => {});
      try {
        await this.open();
      } catch {
        // Still away; whoever calls the store is told so.
        continue;
      }
      if (this.#closing.signal.aborted) return;
      this.#onAccess();
      this.#onMissed();
      return;
    }
  }

  #hear(payload: string): void {
    const hint = parseHint(payload);
    if (hint === null || hint.i === this.#instance) return;
    const { r: runId, s: status, a: asked, t: at, d: resolved, x: deleted } = hint;
    // Anything but a number or null is taken for "not known", which makes a reader look for itself.
    const decidesAt = at === null || Number.isFinite(at) ? at : undefined;
    this.#onHint({
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

// Anybody who may connect can write to the channel.
function parseHint(payload: string): Hint | null {
  try {
    const hint = JSON.parse(payload) as Hint | null;
    return typeof hint?.r === 'string' && isRunId(hint.r) ? hint : null;
  } catch {
    return null;
  }
}
