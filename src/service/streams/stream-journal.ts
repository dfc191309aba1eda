// Feeds one reader a run's events from a cursor on: what is stored, then each as it is stored, then the word that it is
// over. Everything comes from the store, so nothing is left out and nothing comes twice.
import type { Wakeups } from '../../journal/wakeups.js';
import type { Protocol } from '../../store/store.js';
import { namedFrame, type EventStream } from './event-stream.js';
import type { JournalPages } from './journal-pages.js';

export interface JournalSource {
  readonly pages: JournalPages;
  readonly wakeups: Wakeups;
}

export async function streamJournal(
  { pages, wakeups }: JournalSource,
  stream: EventStream,
  runId: string,
  protocol: Protocol,
  cursor: number,
): Promise<void> {
  const watch = wakeups.watch(runId);
  const leave = pages.join(runId, protocol);
  stream.onClosed(() => watch.close());
  try {
    for (let seq = cursor; !stream.over;) {
      const { version } = watch;
      const { bytes, lastSeq, ended } = await pages.after(runId, protocol, seq, version);
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
