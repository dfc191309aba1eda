// The server of a data directory or of a database, if one runs: then commands that change something go through it
// instead of writing themselves.
import { createClient, type ParleyClient } from '../../client/client.js';
import { ParleyError } from '../../client/parley-error.js';
import type { RequestErrorCode } from '../../contract/error-codes.js';
import { RequestError } from '../../run/request-error.js';
import { readServer, type ServerNote } from '../../service/server-file.js';
import { readOperatorToken } from '../../service/access/operator-token.js';
import { findClusterServer } from './find-cluster-server.js';
import type { Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import type { Work } from '../conversation/start-work.js';
import { forceOf } from '../../commands/force-of.js';
import type { Job } from '../conversation/worker.js';
import { isAlive } from '../writer-alive.js';

export interface Server {
  readonly url: string;
  // It is known to be there. Of a database there may be several: who follows a run asks there whether any is.
  readonly alive: () => boolean;
  // What the server refuses becomes an error of the command.
  call<T>(work: (client: ParleyClient) => Promise<T>): Promise<T>;
}

export async function findServer(path: string, io: Io): Promise<Server | null> {
  const note = readLiveServer(path);
  const database = databaseUrl(io);
  if (database === null)
    return (
      note &&
      serverAt(
        note.url,
        () => tokenFor(path, io),
        (error) => explain(error, note.url),
        () => isAlive(note),
      )
    );
  const found = await findClusterServer(database, { path, own: note?.url ?? null, token: givenToken(io) }, io);
  return (
    found &&
    serverAt(
      found.url,
      () => found.token,
      (error) => explainHost(error, found.url, givenToken(io) !== null),
      () => false,
    )
  );
}

// What stands in the directory, as long as its process is there.
export function readLiveServer(path: string): ServerNote | null {
  const note = readServer(path);
  return note && isAlive(note) ? note : null;
}

function serverAt(
  url: string,
  token: () => string,
  toRefusal: (error: ParleyError) => RequestError,
  alive: () => boolean,
): Server {
  return {
    url,
    alive,
    call: async (work) => {
      try {
        return await work(createClient({ url, token: token() }));
      } catch (error) {
        throw error instanceof ParleyError ? toRefusal(error) : error;
      }
    },
  };
}

function givenToken({ env }: Io): string | null {
  return env['PARLEY_TOKEN'] || null;
}

function tokenFor(path: string, io: Io): string {
  const given = givenToken(io);
  if (given !== null) return given;
  try {
    return readOperatorToken(path);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError('UNAUTHORIZED', `a server runs on ${path} with a token of its own: set PARLEY_TOKEN to it`);
  }
}

function explain({ code, message }: ParleyError, url: string): RequestError {
  if (code === 'UNREACHABLE') return new RequestError('DATA_DIR_IN_USE', `${message}; its process is there`);
  if (code === 'UNAUTHORIZED')
    return new RequestError(
      'UNAUTHORIZED',
      `the server at ${url} does not know the token: set PARLEY_TOKEN to the one it was started with`,
    );
  return new RequestError(code as RequestErrorCode, message);
}

function explainHost({ code, message }: ParleyError, url: string, isGiven: boolean): RequestError {
  if (code === 'UNREACHABLE')
    return new RequestError(
      'STORE_UNAVAILABLE',
      `${message}; it answered just now: look with parley ls what became of it, and try again`,
    );
  if (code === 'UNAUTHORIZED')
    return new RequestError(
      'UNAUTHORIZED',
      `the server at ${url} does not know the token ` +
        (isGiven
          ? 'in PARLEY_TOKEN: set it to the one the server was started with, ' +
            'or unset it if it was started without one'
          : 'of this data directory: set PARLEY_TOKEN to the one it was started with'),
    );
  return new RequestError(code as RequestErrorCode, message);
}

// The same as a worker's, done by the server.
export async function workByServer(server: Server, job: Job): Promise<Work> {
  const { run_id: runId } = await server.call((client) => take(client, job));
  return {
    runId,
    interrupted: false,
    alive: server.alive,
    interrupt: () => void server.call((client) => client.cancel(runId)).catch(() => {}),
  };
}

function take(client: ParleyClient, job: Job): Promise<{ readonly run_id: string }> {
  switch (job.type) {
    case 'create':
      return client.create(job.request);
    case 'continue':
      return client.continueFrom(job.run_id, { prompt: job.prompt, ...forceOf(job) });
    case 'fork':
      return client.fork(job.run_id, { prompt: job.prompt, ...forceOf(job) });
    case 'retry':
      return client.retry(job.run_id, forceOf(job));
    case 'reply':
      return client.reply(job.run_id, job.reply);
    case 'settle':
      // It does what is due by itself.
      return Promise.resolve(job);
  }
}
