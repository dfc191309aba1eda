// Polls the waiting questions, for pages that only need their number.
import type { InboxItem } from '../../../src/client/index.js';
import { ParleyError } from '../../../src/client/index.js';
import { client, lost } from './server.js';

const PAUSE_MS = 5000;
const RARE_MS = 30_000;
const SOON_MS = 300;
const PAGE = 500;
// Polling may take at most this share of the time.
const SHARE = 0.05;

let pollNow: (() => void) | null = null;

// Polls again soon, because something has changed.
export function pollSoon(): void {
  pollNow?.();
}

export async function* pollInbox(
  signal: AbortSignal,
  isRare: boolean,
): AsyncGenerator<{ readonly type: 'all'; readonly items: readonly InboxItem[] }, void> {
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      const items = await loadInbox();
      if (signal.aborted) return;
      yield { type: 'all', items };
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
      lost(error);
    }
    const least = (performance.now() - startedAt) / SHARE;
    await pause(Math.max(isRare ? RARE_MS : PAUSE_MS, least), Math.max(SOON_MS, least), signal);
  }
}

// Without retries, so that a lost connection is shown at once.
async function loadInbox(): Promise<readonly InboxItem[]> {
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

// Waits `ms`, or `soonMs` after a call of pollSoon().
function pause(ms: number, soonMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      pollNow = null;
      resolve();
    };
    let timer = window.setTimeout(done, ms);
    // Several calls shorten the pause once.
    pollNow = () => {
      clearTimeout(timer);
      timer = window.setTimeout(done, Math.min(ms, soonMs));
      pollNow = null;
    };
    signal.addEventListener('abort', done);
  });
}
