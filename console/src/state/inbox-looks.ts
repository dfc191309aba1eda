// What waits, looked at again and again: for pages that only want to know how much that is.
import type { InboxChange, InboxItem } from '../../../src/client/index.js';
import { ParleyError } from '../../../src/client/index.js';
import { client, lost } from './server.js';

const PAUSE_MS = 5000;
const SOON_MS = 300;
const PAGE = 500;
// Of the time, a look takes at most so much.
const SHARE = 0.05;

let soon: (() => void) | null = null;

// Something was seen to change: the next look is at once.
export function lookSoon(): void {
  soon?.();
}

export async function* lookAgain(signal: AbortSignal): AsyncGenerator<InboxChange, void> {
  while (!signal.aborted) {
    const begun = performance.now();
    try {
      const items = await lookOnce();
      if (signal.aborted) return;
      yield { type: 'reset' };
      for (const item of items) yield { type: 'pending', item };
      yield { type: 'ready' };
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
      lost(error);
    }
    await pause(Math.max(PAUSE_MS, (performance.now() - begun) / SHARE), signal);
  }
}

// Not tried again by itself: that the server is gone is to be said at once.
async function lookOnce(): Promise<readonly InboxItem[]> {
  const items: InboxItem[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await (await client.request('GET', `/v1/interactions?limit=${PAGE}${query}`)).json()) as { readonly interactions: readonly InboxItem[]; readonly next_cursor: string | null };
    items.push(...page.interactions);
    cursor = page.next_cursor;
  }
  return items;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      soon = null;
      resolve();
    };
    let timer = window.setTimeout(done, ms);
    // Several at once are one.
    soon = () => {
      clearTimeout(timer);
      timer = window.setTimeout(done, SOON_MS);
      soon = null;
    };
    signal.addEventListener('abort', done);
  });
}
