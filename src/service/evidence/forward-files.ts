// The files of a run are served by the host that has them: another host forwards the request and returns the response
// of that host. Checks are forwarded by forward-verify.ts.
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { refusal } from '../../run/request-error.js';
import type { RunFiles } from '../../ownership/ownership.js';
import { loadReadable } from '../../journal/load-run.js';
import type { Store } from '../../store/store.js';
import { answersAs, withoutSlash } from '../access/host-proof.js';

// Hosts with their own files, as far as the service needs to know them.
export interface OtherHosts extends Pick<RunFiles, 'isHere' | 'whereIs'> {
  // Identifies this host to the others, so that they allow it to read.
  readonly token: string;
}

const FORWARDED = 'x-parley-forwarded';
// A healthy host responds at once, on a busy machine soon.
const PROOF_MS = 5000;
// Files may have to be restored first.
export const PATIENCE_MS = 20_000;
const FORWARDED_HEADERS = ['content-type', 'content-length', 'content-disposition'] as const;

// Null: the host cannot be reached, or does not start to respond in time. A response that has started may take any
// time.
async function ask(url: string, token: string): Promise<Response | null> {
  try {
    return await within(PATIENCE_MS, (signal) => fetchForwarded(url, token, signal));
  } catch {
    return null;
  }
}

export function fetchForwarded(url: string, token: string, signal: AbortSignal): Promise<Response> {
  return fetch(url, { headers: { authorization: `Bearer ${token}`, [FORWARDED]: '1' }, signal, redirect: 'error' });
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

// Returns the address of the host that has the files of the run; null: this host has them. Throws FILES_UNREACHABLE.
export async function findFiles(
  store: Store,
  hosts: OtherHosts | null,
  request: FastifyRequest,
): Promise<string | null> {
  const { id = '' } = request.params as { readonly id?: string };
  if (hosts === null || (await hosts.isHere(id))) return null;
  await loadReadable(store, id);
  // A forwarded request is never forwarded again: otherwise two hosts with wrong data could forward it to each other
  // forever.
  const at = request.headers[FORWARDED] === undefined ? await hosts.whereIs(id) : null;
  // Checked each time: the host may have exited, and another program may listen at its address.
  const isThere =
    at !== null &&
    (await within(PROOF_MS, (signal) => answersAs(new Map([[at.host_id, at.public_key]]), at.url, signal)));
  if (!isThere) throw refusal('FILES_UNREACHABLE.host', { run: id });
  return withoutSlash(at.url);
}

export function forwardFiles(store: Store, hosts: OtherHosts | null) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const url = await findFiles(store, hosts, request);
    if (url === null || hosts === null) return undefined;
    const answer = await ask(`${url}${request.url}`, hosts.token);
    const { id = '' } = request.params as { readonly id?: string };
    if (!answer) throw refusal('FILES_UNREACHABLE.host', { run: id });
    return passOn(answer, reply);
  };
}

export function passOn(answer: Response, reply: FastifyReply): FastifyReply {
  for (const name of FORWARDED_HEADERS) {
    const value = answer.headers.get(name);
    if (value !== null) reply.header(name, value);
  }
  return reply.code(answer.status).send(answer.body ? Readable.fromWeb(answer.body as ReadableStream) : null);
}
