// Tries once to deliver: sends a POST to the address of the hook and follows no redirect. Only a 2xx response counts as
// delivered.
import type { Clock } from '../kernel/clock.js';
import { clip, redact } from '../kernel/redact.js';
import type { Timers } from '../process/timers.js';
import type { Delivery } from '../store/store.js';
import type { SendingHook } from './load-hooks.js';
import { signedHeaders } from './sign.js';
import { createMessages, verbatim, type Message } from '../kernel/message.js';
import { reasonMessage } from '../messages/system-reason.js';

const LIMIT_MS = 10_000;
const ERROR_CHARS = 300;

export const POST_TEXTS = { 'post.late': 'no answer within {seconds} s' } as const;

const postText = createMessages(POST_TEXTS);

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface PostDeps {
  readonly fetch: Fetch;
  readonly timers: Timers;
  readonly clock: Clock;
  // Aborts the request.
  readonly stop: AbortSignal;
}

export type Posted = Pick<Delivery, 'delivery_id' | 'payload' | 'rasp_seq' | 'digest'>;

// Resolves to the reason of the failure, or to null if the delivery arrived.
export async function post(
  { fetch, timers, clock, stop }: PostDeps,
  { url, key }: SendingHook,
  delivery: Posted,
): Promise<Message | null> {
  const body = JSON.stringify({
    id: delivery.delivery_id,
    ...delivery.payload,
    seq: delivery.rasp_seq,
    digest: delivery.digest,
  });
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
      headers: {
        'content-type': 'application/json',
        'user-agent': 'parley',
        ...signedHeaders(key, { id: delivery.delivery_id, now: clock.now(), body }),
      },
      body,
      redirect: 'manual',
      signal: cut.signal,
    });
    // Ignores the body of the response.
    void response.body?.cancel().catch(() => {});
    return response.ok ? null : verbatim(`HTTP ${response.status}`);
  } catch (error) {
    return late ? postText('post.late', { seconds: LIMIT_MS / 1000 }) : describe(error);
  } finally {
    cancel();
    stop.removeEventListener('abort', onStop);
  }
}

function describe(error: unknown): Message {
  const reason = reasonMessage(error);
  return reason.key === '' ? verbatim(clip(redact(reason.text), ERROR_CHARS)) : reason;
}
