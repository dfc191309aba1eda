// The server of a data directory or of a database, if one runs: then commands that change something go through it
// instead of writing themselves.
import { phraseOfError } from '../../messages/message-template.js';
import { createClient, type ParleyClient } from '../../client/client.js';
import { ParleyError } from '../../client/parley-error.js';
import type { RequestErrorCode } from '../../contract/error-codes.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { readServer, type ServerNote } from '../../service/server-file.js';
import { readOperatorToken } from '../../service/access/operator-token.js';
import { findClusterServer } from './find-cluster-server.js';
import type { Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import type { Work } from '../conversation/start-work.js';
import { forceOf } from '../../commands/force-of.js';
import type { Job } from '../conversation/assignment.js';
import { isAlive } from '../writer-alive.js';

export interface Server {
  readonly url: string;
  // Whether its process is known to run. Always false for a server of a shared database, which may have several
  // servers: a command that follows a run asks the database whether any of them runs.
  readonly alive: () => boolean;
  // Turns an error response of the server into an error of the command.
  call<T>(work: (client: ParleyClient) => Promise<T>): Promise<T>;
}

export async function findServer(path: string, io: Io): Promise<Server | null> {
  const note = readLiveServer(path);
  const database = databaseUrl(io);
  if (database === null)
    return (
      note &&
      serverAt(note.url, {
        token: () => tokenFor(path, io),
        toRefusal: (error) => explain(error, note.url),
        alive: () => isAlive(note),
      })
    );
  const server = await findClusterServer(database, { path, own: note?.url ?? null, token: givenToken(io) }, io);
  return (
    server &&
    serverAt(server.url, {
      token: () => server.token,
      toRefusal: (error) => explainHost(error, { url: server.url, isTokenSet: givenToken(io) !== null }),
      alive: () => false,
    })
  );
}

// Returns the server that is registered in the directory, if its process still runs.
export function readLiveServer(path: string): ServerNote | null {
  const note = readServer(path);
  return note && isAlive(note) ? note : null;
}

interface ServerOptions extends Pick<Server, 'alive'> {
  readonly token: () => string;
  readonly toRefusal: (error: ParleyError) => RequestError;
}

function serverAt(url: string, { token, toRefusal, alive }: ServerOptions): Server {
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
  const token = givenToken(io);
  if (token !== null) return token;
  try {
    return readOperatorToken(path);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw refusal('UNAUTHORIZED.own_token', { path });
  }
}

function explain(error: ParleyError, url: string): RequestError {
  const { code, message, values, hint } = error;
  if (code === 'UNREACHABLE') return refusal('DATA_DIR_IN_USE.silent', { problem: phraseOfError(error) });
  if (code === 'UNAUTHORIZED') return refusal('UNAUTHORIZED.other_token', { url });
  return new RequestError(code as RequestErrorCode, message, { values, hint });
}

// `isTokenSet`: the token is from PARLEY_TOKEN, not from the data directory.
function explainHost(
  error: ParleyError,
  { url, isTokenSet }: { readonly url: string; readonly isTokenSet: boolean },
): RequestError {
  const { code, message, values, hint } = error;
  if (code === 'UNREACHABLE') return refusal('STORE_UNAVAILABLE.lost_server', { problem: phraseOfError(error) });
  if (code === 'UNAUTHORIZED')
    return refusal(isTokenSet ? 'UNAUTHORIZED.wrong_variable' : 'UNAUTHORIZED.wrong_data_dir', { url });
  return new RequestError(code as RequestErrorCode, message, { values, hint });
}

// Runs a job on the server instead of in a worker.
export async function workByServer(server: Server, job: Job): Promise<Work> {
  const { run_id: runId } = await server.call((client) => runJob(client, job));
  return {
    runId,
    interrupted: false,
    alive: server.alive,
    interrupt: () => void server.call((client) => client.cancel(runId)).catch(() => {}),
  };
}

function runJob(client: ParleyClient, job: Job): Promise<{ readonly run_id: string }> {
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
    case 'run_due':
      // A server runs due work without being asked.
      return Promise.resolve(job);
  }
}
