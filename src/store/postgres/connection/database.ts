// The connections to one PostgreSQL database. Statements are prepared by name; what is written together is sent
// together, so that a transaction takes two round trips: what it must know, and what it does about it.
import {
  Client,
  Pool,
  types as defaults,
  type ClientConfig,
  type CustomTypesConfig,
  type PoolClient,
  type PoolConfig,
  type QueryResult,
} from 'pg';
import { describeLoss, isLost, isRefusedNow, LostConnectionError, readPlace, type Place } from './lost-connection.js';
import { patiently } from './patience.js';
import { toText } from './text.js';

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

// What a transaction does after it has looked: nothing, or these statements.
export type Decision<T> = { readonly leave: T } | { readonly write: readonly Statement[]; readonly answer: T };

export interface DatabaseOptions {
  // How many connections at most, besides the one that listens.
  readonly connections?: number;
  // How long an answer is waited for.
  readonly answerMs?: number;
}

const CONNECTIONS = 10;
// For a new connection, and for a free one.
const CONNECT_MS = 10_000;
// A row is locked for as long as a commit takes; whoever holds it longer is gone.
const LOCK_MS = 5000;
const IDLE_IN_TRANSACTION_MS = 5000;
const ANSWER_MS = 30_000;
const KEEPALIVE_MS = 10_000;
const INT8 = 20;

// Of our connections only: other users of the driver in this process may want their bigints as they are.
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : (defaults.getTypeParser(oid, format as 'text') as (value: string) => unknown),
} as CustomTypesConfig;

// Whoever only looks needs no more.
export type Reader = Pick<Database, 'read'>;

export class Database {
  readonly #pool: Pool;
  readonly #config: ClientConfig;
  readonly place: Place;
  #closed: Promise<void> | null = null;

  constructor(url: string, { connections = CONNECTIONS, answerMs = ANSWER_MS }: DatabaseOptions = {}) {
    this.place = readPlace(url);
    this.#config = {
      connectionString: url,
      types,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: 'parley',
    };
    this.#pool = new Pool({
      ...this.#config,
      max: connections,
      pipeline: true,
      query_timeout: answerMs,
      lock_timeout: LOCK_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    } as PoolConfig);
    // A connection that breaks is told to whoever waits for its answer; nobody else needs to know, least of all by an
    // end of the process.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => {
      client.on('error', () => {});
      // Whatever the database is set to: a statement that waited for a row must see it as it is then.
      client.query('SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED').catch(() => {});
    });
  }

  // A statement that only looks, or may be done twice: it is tried again if its connection turns out to be broken, and
  // for a moment if there is none.
  async read<R extends object>(statement: Statement): Promise<R[]> {
    return patiently(() => this.#again(() => this.#single<R>(statement, false)));
  }

  // One statement as its own transaction.
  async write<R extends object>(statement: Statement): Promise<R[]> {
    return this.#single(statement, true);
  }

  async #single<R extends object>(statement: Statement, commits: boolean): Promise<R[]> {
    return this.#with(async (client) => {
      const [answer] = await this.#send(client, [statement], commits);
      return (answer?.rows ?? []) as R[];
    });
  }

  // The statements of `look` are answered before `decide` says what is written.
  async transact<T>(
    look: readonly Statement[],
    decide: (...answers: readonly QueryResult[]) => Decision<T> | Promise<Decision<T>>,
  ): Promise<T> {
    return this.#again(() =>
      this.#with(async (client) => {
        let open = true;
        try {
          const [, ...answers] = await this.#send(client, [BEGIN, ...look], false);
          const decision = await decide(...answers);
          if ('leave' in decision) return decision.leave;
          open = false;
          await this.#send(client, [...decision.write, COMMIT], true);
          return decision.answer;
        } finally {
          // After a failure the connection itself may be what failed; then this fails as well, and the server has given
          // up the rest.
          if (open) await client.query('ROLLBACK').catch(() => {});
        }
      }),
    );
  }

  // A connection of its own, which nobody else uses.
  async connect(): Promise<Client> {
    const client = new Client(this.#config);
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      // One that was refused is still open.
      void client.end().catch(() => {});
      throw describeLoss(this.place, error, false);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#pool.end();
    return this.#closed;
  }

  // Only if nothing can have been changed, and only as often as there may be broken connections that nobody has noticed
  // yet: one that cannot be made is not tried again.
  async #again<T>(work: () => Promise<T>): Promise<T> {
    for (let left = this.#pool.options.max; ; left -= 1) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof BrokenError) || error.uncertain || left <= 0) throw error;
      }
    }
  }

  async #with<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw describeLoss(this.place, error, false);
    }
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      broken = error instanceof LostConnectionError;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  // All in one go. If one fails, those after it fail too, a COMMIT included; the first failure is the reason.
  async #send(client: PoolClient, statements: readonly Statement[], commits: boolean): Promise<QueryResult[]> {
    const answers = await Promise.allSettled(
      statements.map(({ name, text, values }) => client.query({ name, text, values: values.map(withoutNul) })),
    );
    const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []));
    const [first] = failures;
    if (first === undefined) return answers.map((answer) => (answer as PromiseFulfilledResult<QueryResult>).value);
    const lost = failures.find(isLost);
    if (lost === undefined) throw isRefusedNow(first) ? describeLoss(this.place, first, false) : first;
    // A statement that was refused before the connection broke has taken the transaction with it.
    const { message } = describeLoss(this.place, lost, commits && first === lost);
    throw new BrokenError(message, commits && first === lost);
  }
}

// Whoever asks for an id with a NUL in it finds nothing; PostgreSQL would not even look.
function withoutNul(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? toText(value) : value;
}

// A connection that was there and broke, in contrast to one that could not be made.
class BrokenError extends LostConnectionError {}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN', values: [] };
const COMMIT: Statement = { name: 'commit', text: 'COMMIT', values: [] };
