// What waits, looked at again and again: for pages that only want to know how much that is.
import type { InboxItem } from '../../../src/client/index.js';
import { ParleyError } from '../../../src/client/index.js';
import { client, lost } from './server.js';

const PAUSE_MS = 5000;
const SELDOM_MS = 30_000;
const SOON_MS = 300;
const PAGE = 500;
// Of the time, a look takes at most so much.
const SHARE = 0.05;

let soon: (() => void) | null = null;

// Something was seen to change: the next look is at once.
export function lookSoon(): void {
  soon?.();
}

export async function* lookAgain(
  signal: AbortSignal,
  isSeldom: boolean,
): AsyncGenerator<{ readonly type: 'all'; readonly items: readonly InboxItem[] }, void> {
  while (!signal.aborted) {
    const begun = performance.now();
    try {
      const items = await lookOnce();
      if (signal.aborted) return;
      yield { type: 'all', items };
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
      lost(error);
    }
    const least = (performance.now() - begun) / SHARE;
    await pause(Math.max(isSeldom ? SELDOM_MS : PAUSE_MS, least), Math.max(SOON_MS, least), signal);
  }
}

// Not tried again by itself: that the server is gone is to be said at once.
async function lookOnce(): Promise<readonly InboxItem[]> {
  const items: InboxItem[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await (await client.request('GET', `/v1/interactions?limit=${PAGE}${query}`)).json()) as {
      readonly interactions: readonly InboxItem[];
      readonly next_cursor: string | null;
    };
    items.push(...page.interactions);
    cursor = page.next_cursor;
  }
  return items;
}

// `soonMs`: how long at least, whatever happens.
function pause(ms: number, soonMs: number, signal: AbortSignal): Promise<void> {
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
      timer = window.setTimeout(done, Math.min(ms, soonMs));
      soon = null;
    };
    signal.addEventListener('abort', done);
  });
}
