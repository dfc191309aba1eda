// From a child's pipe into its log, then to whoever listens, chunk by chunk. The next chunk is read when the last one
// is done with, so a slow listener slows the child down and no memory fills up. Resolves at the end of the stream,
// never throws.
import type { Readable } from 'node:stream';
import type { IdleWatch } from './idle-watch.js';
import type { StreamLog } from './stream-log.js';

export interface PumpEnds {
  readonly log: StreamLog;
  readonly idle: IdleWatch;
  // Given only bytes that are in the log.
  readonly deliver: (chunk: Buffer) => void | Promise<void>;
  // After a failure the pipe is still read to its end: the child must not block on us while it is being ended.
  readonly fail: (error: unknown) => void;
}

// Iterated, not listened to by 'data': Node resumes paused streams of an exited child, which would undo the
// back-pressure.
export async function pump(source: Readable, { log, idle, deliver, fail }: PumpEnds): Promise<void> {
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      idle.hold();
      try {
        log.append(chunk);
        await deliver(chunk);
      } catch (error) {
        fail(error);
      } finally {
        idle.release();
      }
    }
  } catch (error) {
    // The pipe was destroyed: only we do that, knowing why.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE')) fail(error);
  }
}
