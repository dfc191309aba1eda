// Sends one reader a run's events after a cursor: the stored ones, then each new one, then the end of the run. All come
// from the store, so there are no gaps and no duplicates.
import type { Wakeups } from '../../journal/wakeups.js';
import { namedFrame, type EventStream } from './event-stream.js';
import type { JournalPages, JournalRef } from './journal-pages.js';

export interface JournalSource {
  readonly pages: JournalPages;
  readonly wakeups: Wakeups;
}

export async function streamJournal(
  { pages, wakeups }: JournalSource,
  stream: EventStream,
  journal: JournalRef & { readonly cursor: number },
): Promise<void> {
  const { runId } = journal;
  const watch = wakeups.watch(runId);
  const leave = pages.join(journal);
  stream.onClosed(() => watch.close());
  try {
    for (let seq = journal.cursor; !stream.over;) {
      const { version } = watch;
      const { bytes, lastSeq, ended } = await pages.after(journal, seq, version);
      seq = lastSeq;
      if (bytes) await stream.write(bytes);
      if (ended !== null) return stream.end(namedFrame('end', { run_id: runId, status: ended, seq }));
      if (!bytes) await stream.idle(watch.changed(version));
    }
  } finally {
    leave();
    watch.close();
  }
}
