// Reads the RASP events of a run page by page: a page is bounded in events and in size, so a journal of any length can
// be read. Throws a DamagedDataError for a journal with a gap or a line that is not JSON.
import { readStoredJson } from '../kernel/stored-json.js';
import type { RaspEvent } from '../rasp/event.js';
import type { Store } from '../store/store.js';

const PAGE_EVENTS = 500;
const PAGE_CHARS = 1_000_000;
// Reading backwards cannot stop a page at a size, so the page has fewer events.
const PAGE_BACK = 200;

type Source = Pick<Store, 'readJournal'>;

// Yields from the first event to the last one, including events that are stored while it reads, or those of a range.
export async function* everyEvent(
  store: Source,
  runId: string,
  { fromSeq: first = 1, toSeq = Number.MAX_SAFE_INTEGER }: { readonly fromSeq?: number; readonly toSeq?: number } = {},
): AsyncGenerator<RaspEvent> {
  for (let fromSeq = first; fromSeq <= toSeq;) {
    const lines = await store.readJournal(runId, 'rasp', { fromSeq, toSeq, limit: PAGE_EVENTS, maxChars: PAGE_CHARS });
    if (lines.length === 0) return;
    for (const line of lines) yield readStoredJson(line) as RaspEvent;
    fromSeq += lines.length;
    // Lets other work of this process run between two pages.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// Yields from this event back to the first one.
export async function* everyEventBefore(store: Source, runId: string, lastSeq: number): AsyncGenerator<RaspEvent> {
  for (let toSeq = lastSeq; toSeq > 0; toSeq -= PAGE_BACK) {
    const fromSeq = Math.max(1, toSeq - PAGE_BACK + 1);
    const lines = await store.readJournal(runId, 'rasp', { fromSeq, toSeq, limit: PAGE_BACK });
    for (const line of lines.toReversed()) yield readStoredJson(line) as RaspEvent;
  }
}
