// What lies in the files of a run is answered by the host that has them: whoever asks another one is given that host's
// answer.
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestError } from '../../run/request-error.js';
import type { FilesPlace } from '../../dispatch/cluster.js';
import { loadReadable } from '../../journal/load-run.js';
import type { Store } from '../../store/store.js';
import { answersAs, withoutSlash } from '../access/host-proof.js';

// Hosts with files of their own, as far as the service needs to know of them.
export interface OtherHosts {
  // Identifies this host to the others, which let it read.
  readonly token: string;
  hasFiles(runId: string): Promise<boolean>;
  whereFiles(runId: string): Promise<FilesPlace | null>;
}

const FORWARDED = 'x-parley-forwarded';
// One that is well answers at once, on a busy machine soon.
const PROOF_MS = 5000;
// To verify a large run takes a while.
const PATIENCE_MS = 20_000;
const TOLD = ['content-type', 'content-length', 'content-disposition'] as const;

// Null: it cannot be reached, or is there and says nothing. What it has begun to say may take as long as it takes.
async function ask(url: string, token: string): Promise<Response | null> {
  try {
    return await within(PATIENCE_MS, (signal) =>
      fetch(url, { headers: { authorization: `Bearer ${token}`, [FORWARDED]: '1' }, signal, redirect: 'error' }),
    );
  } catch {
    return null;
  }
}

async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), ms);
  try {
    return await work(silence.signal);
  } finally {
    clearTimeout(timer);
  }
}

export function forwardFiles(store: Store, hosts: OtherHosts | null) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const { id = '' } = request.params as { readonly id?: string };
    if (hosts === null || (await hosts.hasFiles(id))) return undefined;
    await loadReadable(store, id);
    // Whoever forwards is believed to have the right address; the other way round they would go round for ever.
    const at = request.headers[FORWARDED] === undefined ? await hosts.whereFiles(id) : null;
    // Each time anew: a host may be gone since, and another program listen where it was.
    const isThere =
      at !== null &&
      (await within(PROOF_MS, (signal) => answersAs(new Map([[at.host_id, at.public_key]]), at.url, signal)));
    const answer = isThere ? await ask(`${withoutSlash(at.url)}${request.url}`, hosts.token) : null;
    if (!answer)
      throw new RequestError(
        'FILES_UNREACHABLE',
        `the files of run ${id} are on another host, which cannot be reached now`,
      );
    for (const name of TOLD) {
      const value = answer.headers.get(name);
      if (value !== null) reply.header(name, value);
    }
    return reply.code(answer.status).send(answer.body ? Readable.fromWeb(answer.body as ReadableStream) : null);
  };
}
