// One stream of one attempt as a file: exactly the bytes that were read, in their order, never written twice.
// `bytes` and `sha256` speak of what is in the file, also when the disk filled up in the middle of a chunk.
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openToAppend } from '../files/read-file.js';
import type { StreamName } from '../rasp/event.js';

export interface LogFile extends Pick<FileHandle, 'datasync' | 'close'> {
  // Answers how many bytes of it are in the file now. At once: into the memory of the system, where another thread
  // would take longer to be woken.
  write(chunk: Buffer, from: number): number;
}

export class StreamLog {
  readonly #file: LogFile;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #synced = 0;
  #broken: { readonly error: unknown } | null = null;
  #unsynced: { readonly error: unknown } | null = null;

  constructor(file: LogFile) {
    this.#file = file;
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(chunk: Buffer): void {
    // Whatever came after a failure would leave a hole: once broken, nothing is taken any more.
    if (this.#broken) throw this.#broken.error;
    try {
      for (let at = 0; at < chunk.length;) {
        const written = this.#file.write(chunk, at);
        this.#hash.update(chunk.subarray(at, at + written));
        this.#bytes += written;
        at += written;
      }
    } catch (error) {
      this.#broken = { error };
      throw error;
    }
  }

  // All bytes appended before the call are on the disk when it resolves; also after close.
  async sync(): Promise<void> {
    const upTo = this.#bytes;
    if (this.#synced >= upTo) return;
    if (this.#unsynced) throw this.#unsynced.error;
    try {
      await this.#file.datasync();
    } catch (error) {
      // What the disk did not take once, the system may have forgotten: a second try would say nothing.
      this.#unsynced = { error };
      throw error;
    }
    this.#synced = Math.max(this.#synced, upTo);
  }

  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.#file.close();
    }
  }

  digest(): { readonly bytes: number; readonly sha256: string } {
    return { bytes: this.#bytes, sha256: this.#hash.copy().digest('hex') };
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

// Closes both, also when one refuses; then says so.
export async function closeLogs(logs: StreamLogs): Promise<void> {
  const refused = (await Promise.allSettled([logs.stdout.close(), logs.stderr.close()])).find(
    ({ status }) => status === 'rejected',
  );
  if (refused?.status === 'rejected') throw refused.reason;
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
  return new StreamLog({
    write: (chunk, from) => writeSync(file.fd, chunk, from),
    datasync: () => file.datasync(),
    close: () => file.close(),
  });
}
