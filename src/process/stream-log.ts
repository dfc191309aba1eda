// One stream of one attempt as a file, with its hash. An attempt is never written twice: a file with content is
// refused.
import { createHash } from 'node:crypto';
import { openToAppend } from '../files/read-file.js';
import type { StreamName } from '../rasp/event.js';
import { AppendLog, toLogFile } from './append-log.js';

export class StreamLog extends AppendLog {
  readonly #hash = createHash('sha256');

  // The digest of the bytes in the file.
  digest(): { readonly bytes: number; readonly sha256: string } {
    return { bytes: this.bytes, sha256: this.#hash.copy().digest('hex') };
  }

  protected override onWritten(bytes: Buffer): void {
    this.#hash.update(bytes);
  }
}

export type StreamLogs = Readonly<Record<StreamName, StreamLog>>;

export async function openLogs(paths: Readonly<Record<StreamName, string>>): Promise<StreamLogs> {
  const [stdout, stderr] = await Promise.allSettled([openLog(paths.stdout), openLog(paths.stderr)]);
  if (stdout.status === 'fulfilled' && stderr.status === 'fulfilled')
    return { stdout: stdout.value, stderr: stderr.value };
  for (const opened of [stdout, stderr]) if (opened.status === 'fulfilled') await opened.value.close();
  throw stdout.status === 'rejected' ? stdout.reason : (stderr as PromiseRejectedResult).reason;
}

async function openLog(path: string): Promise<StreamLog> {
  const file = await openToAppend(path);
  try {
    const { size } = await file.stat();
    if (size > 0) throw new Error(`the log ${path} already holds ${size} bytes: an attempt is never written twice`);
  } catch (error) {
    await file.close();
    throw error;
  }
  return new StreamLog(toLogFile(file));
}
