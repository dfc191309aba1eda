// One try to deliver: a POST to the address of the hook and to no other. Only a 2xx is an arrival.
import { clip, redact } from '../kernel/redact.js';
import type { Timers } from '../process/timers.js';
import type { Delivery } from '../store/store.js';
import type { SendingHook } from './load-hooks.js';
import { signedHeaders } from './sign.js';

export const LIMIT_MS = 10_000;
const ERROR_CHARS = 300;

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface PostDeps {
  readonly fetch: Fetch;
  readonly timers: Timers;
  // Where people open runs; the payload has no link without it.
  readonly baseUrl?: string | undefined;
  // Cuts it off from outside.
  readonly stop: AbortSignal;
}

export type Posted = Pick<Delivery, 'delivery_id' | 'run_id' | 'payload' | 'rasp_seq' | 'digest'>;

// Why it did not arrive; null if it did.
export async function post({ fetch, timers, baseUrl, stop }: PostDeps, { url, key }: SendingHook, delivery: Posted, now: number): Promise<string | null> {
  const { delivery_id: id, payload, run_id: runId, rasp_seq: seq, digest } = delivery;
  const body = JSON.stringify({ id, ...payload, url: linkTo(baseUrl, runId), seq, digest });
  const cut = new AbortController();
  let late = false;
  const cancel = timers.set(LIMIT_MS, () => {
    late = true;
    cut.abort();
  });
  const onStop = (): void => cut.abort();
  stop.addEventListener('abort', onStop);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'parley', ...signedHeaders(key, delivery.delivery_id, now, body) },
      body,
      redirect: 'manual',
      signal: cut.signal,
    });
    // What it says besides is not read.
    void response.body?.cancel().catch(() => {});
    return response.ok ? null : `HTTP ${response.status}`;
  } catch (error) {
    return late ? `no answer within ${LIMIT_MS / 1000} s` : describe(error);
  } finally {
    cancel();
    stop.removeEventListener('abort', onStop);
  }
}

// Where a person opens the run; a test delivery has none and links to the server.
function linkTo(baseUrl: string | undefined, runId: string): string | null {
  if (baseUrl === undefined) return null;
  return runId === '' ? baseUrl : `${baseUrl}/runs/${runId}`;
}

// fetch hides the reason in the cause.
function describe(error: unknown): string {
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return clip(redact(message || code || String(error)), ERROR_CHARS);
}
