// The server of a data directory, if one runs: then commands that change something go through it instead of writing themselves.
import { createClient, type ParleyClient } from '../client/client.js';
import { ParleyError } from '../client/parley-error.js';
import type { RequestErrorCode } from '../contract/error-codes.js';
import { RequestError } from '../run/request-error.js';
import { readServer } from '../service/server-file.js';
import { readOperatorToken } from '../service/operator-token.js';
import type { Io } from './io.js';
import type { Work } from './start-work.js';
import type { Job } from './worker.js';
import { isAlive } from './writer-alive.js';

export interface Server {
  readonly url: string;
  readonly pid: number;
  readonly alive: () => boolean;
  // What the server refuses becomes an error of the command.
  call<T>(work: (client: ParleyClient) => Promise<T>): Promise<T>;
}

export function findServer(path: string, io: Io): Server | null {
  const note = readServer(path);
  if (!note || !isAlive(note)) return null;
  const { url, pid } = note;
  return {
    url,
    pid,
    alive: () => isAlive(note),
    call: async (work) => {
      try {
        return await work(createClient({ url, token: tokenFor(path, io) }));
      } catch (error) {
        throw error instanceof ParleyError ? toRequestError(error, url) : error;
      }
    },
  };
}

function tokenFor(path: string, { env }: Io): string {
  const given = env['PARLEY_TOKEN'];
  if (given !== undefined && given !== '') return given;
  try {
    return readOperatorToken(path);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError('UNAUTHORIZED', `a server runs on ${path} with a token of its own: set PARLEY_TOKEN to it`);
  }
}

function toRequestError({ code, message }: ParleyError, url: string): RequestError {
  if (code === 'UNREACHABLE') return new RequestError('DATA_DIR_IN_USE', `${message}; its process is there`);
  if (code === 'UNAUTHORIZED') return new RequestError('UNAUTHORIZED', `the server at ${url} does not know the token: set PARLEY_TOKEN to the one it was started with`);
  return new RequestError(code as RequestErrorCode, message);
}

// The same as a worker's, done by the server.
export async function workByServer(server: Server, job: Job): Promise<Work> {
  const { run_id: runId } = await server.call((client) => take(client, job));
  return {
    runId,
    pid: server.pid,
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
      return client.continueFrom(job.run_id, { prompt: job.prompt });
    case 'fork':
      return client.fork(job.run_id, { prompt: job.prompt });
    case 'retry':
      return client.retry(job.run_id);
    case 'reply':
      return client.reply(job.run_id, job.reply);
    case 'settle':
      // It does what is due by itself.
      return Promise.resolve(job);
  }
}
