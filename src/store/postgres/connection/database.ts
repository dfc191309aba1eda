// The connections to one PostgreSQL database. Statements are prepared by name. A transaction takes two round trips: one
// to read, and one to write and commit.
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

// The writes of a transaction after its reads: none, or these statements.
export type Decision<T> = { readonly leave: T } | { readonly write: readonly Statement[]; readonly answer: T };

export interface DatabaseOptions {
  // The maximum number of connections, besides the one that listens.
  readonly connections?: number;
  // How long to wait for a result.
  readonly answerMs?: number;
}

const CONNECTIONS = 10;
// How long to wait for a new connection, or for a free one.
const CONNECT_MS = 10_000;
// A row is locked only for the duration of a commit; a transaction that holds it longer is stuck.
const LOCK_MS = 5000;
const IDLE_IN_TRANSACTION_MS = 5000;
const ANSWER_MS = 30_000;
const KEEPALIVE_MS = 10_000;
const INT8 = 20;

// For our connections only: other users of the driver in this process may want bigints unchanged.
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : (defaults.getTypeParser(oid, format as 'text') as (value: string) => unknown),
} as CustomTypesConfig;

// Whether statements may have changed the database if their connection breaks.
type Effect = 'read' | 'commit';

// For functions that only read.
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
    // A broken connection is reported to the caller that waits for its result. Without this listener, the error would
    // end the process.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => {
      client.on('error', () => {});
      // Independent of the settings of the database: a statement that waited for a row must see its new version.
      client.query('SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED').catch(() => {});
    });
  }

  // Runs a read or an idempotent statement. Retries on a broken connection, and for a short time if there is none.
  async read<R extends object>(statement: Statement): Promise<R[]> {
    return patiently(() => this.#again(() => this.#single<R>(statement, 'read')));
  }

  // Runs one statement as its own transaction.
  async write<R extends object>(statement: Statement): Promise<R[]> {
    return this.#single(statement, 'commit');
  }

  async #single<R extends object>(statement: Statement, effect: Effect): Promise<R[]> {
    return this.#with(async (client) => {
      const [answer] = await this.#send(client, [statement], effect);
      return (answer?.rows ?? []) as R[];
    });
  }

  // Runs the statements of `look`; `decide` then returns the writes.
  async transact<T>(
    look: readonly Statement[],
    decide: (...answers: readonly QueryResult[]) => Decision<T> | Promise<Decision<T>>,
  ): Promise<T> {
    return this.#again(() =>
      this.#with(async (client) => {
        let open = true;
        try {
          const [, ...answers] = await this.#send(client, [BEGIN, ...look], 'read');
          const decision = await decide(...answers);
          if ('leave' in decision) return decision.leave;
          open = false;
          await this.#send(client, [...decision.write, COMMIT], 'commit');
          return decision.answer;
        } finally {
          // If the connection itself failed, this fails as well, and the server has already rolled back.
          if (open) await client.query('ROLLBACK').catch(() => {});
        }
      }),
    );
  }

  // Opens a connection that nobody else uses.
  async connect(): Promise<Client> {
    const client = new Client(this.#config);
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      // A refused connection is still open.
      void client.end().catch(() => {});
      throw describeLoss(this.place, error);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#pool.end();
    return this.#closed;
  }

  // Retries only if nothing can have changed, and only as often as there may be broken connections that were not
  // noticed yet: a connection that cannot be opened is not retried.
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
      throw describeLoss(this.place, error);
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

  // Sends all statements at once. If one fails, those after it fail too, including a COMMIT; the first failure is the
  // reason.
  async #send(client: PoolClient, statements: readonly Statement[], effect: Effect): Promise<QueryResult[]> {
    const answers = await Promise.allSettled(
      statements.map(({ name, text, values }) => client.query({ name, text, values: values.map(withoutNul) })),
    );
    const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []));
    const [first] = failures;
    if (first === undefined) return answers.map((answer) => (answer as PromiseFulfilledResult<QueryResult>).value);
    const lost = failures.find(isLost);
    if (lost === undefined) throw isRefusedNow(first) ? describeLoss(this.place, first) : first;
    // If a statement was refused before the connection broke, the transaction is rolled back for certain.
    const uncertain = effect === 'commit' && first === lost;
    const { message, values } = describeLoss(this.place, lost, { uncertain });
    throw new BrokenError(message, { uncertain, values });
  }
}

// An id with a NUL character matches nothing; PostgreSQL would reject the query.
function withoutNul(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? toText(value) : value;
}

// An open connection that broke, as opposed to one that could not be opened.
class BrokenError extends LostConnectionError {}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN', values: [] };
const COMMIT: Statement = { name: 'commit', text: 'COMMIT', values: [] };
