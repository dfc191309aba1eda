// Copies a child's pipe to its log and then to the listener, chunk by chunk. Reads the next chunk when the listener has
// handled the last one, so a slow listener slows the child down and memory stays bounded. Resolves at the end of the
// stream and never rejects.
import type { Readable } from 'node:stream';
import type { AppendLog } from './append-log.js';
import type { IdleWatch } from './idle-watch.js';

export interface PumpEnds {
  readonly log: AppendLog;
  readonly idle: IdleWatch;
  // Gets only bytes that are in the log.
  readonly deliver: (chunk: Buffer) => void | Promise<void>;
  // After a failure the pipe is still read to its end, so that the child does not block on it while it is being ended.
  readonly fail: (error: unknown) => void;
}

// Iterates instead of listening for 'data': Node resumes paused streams of an exited child, which would undo the
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
    // The pipe was destroyed, which only our own code does.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE')) fail(error);
  }
}
