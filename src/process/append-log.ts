// An append-only log file: exactly the appended bytes, in their order. `bytes` is the size of the file, even if the
// disk filled up in the middle of a chunk.
import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openToAppend } from '../files/read-file.js';

export interface LogFile extends Pick<FileHandle, 'datasync' | 'close'> {
  // Returns how many bytes of the chunk, starting at `from`, were written. Synchronous: the bytes only go to the page
  // cache, and waking another thread would take longer.
  write(chunk: Buffer, from: number): number;
}

const LF = 0x0a;

export class AppendLog {
  readonly #file: LogFile;
  #bytes: number;
  #synced: number;
  #broken: { readonly error: unknown } | null = null;
  #unsynced: { readonly error: unknown } | null = null;

  // `bytes` is the current size of the file.
  constructor(file: LogFile, bytes = 0) {
    this.#file = file;
    this.#bytes = bytes;
    this.#synced = bytes;
  }

  // Appends to an existing file. Terminates a last line that a crash cut off, so that the next byte starts a line.
  static async open(path: string): Promise<AppendLog> {
    const file = await openToAppend(path, { reads: true });
    try {
      const { size } = await file.stat();
      const log = new AppendLog(toLogFile(file), size);
      const last = Buffer.alloc(1);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      if (size > 0 && last[0] !== LF) log.append(Buffer.from([LF]));
      return log;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(chunk: Buffer): void {
    // Bytes after a failed write would leave a gap, so a broken log rejects all of them.
    if (this.#broken) throw this.#broken.error;
    try {
      for (let at = 0; at < chunk.length;) {
        const written = this.#file.write(chunk, at);
        this.onWritten(chunk.subarray(at, at + written));
        this.#bytes += written;
        at += written;
      }
    } catch (error) {
      this.#broken = { error };
      throw error;
    }
  }

  // Resolves when all bytes appended before the call are on the disk. Also works after close.
  async sync(): Promise<void> {
    const upTo = this.#bytes;
    if (this.#synced >= upTo) return;
    if (this.#unsynced) throw this.#unsynced.error;
    try {
      await this.#file.datasync();
    } catch (error) {
      // After a failed fsync the kernel may have dropped the bytes: a second call could succeed without writing them.
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

  protected onWritten(_bytes: Buffer): void {}
}

export function toLogFile(file: FileHandle): LogFile {
  return {
    write: (chunk, from) => writeSync(file.fd, chunk, from),
    datasync: () => file.datasync(),
    close: () => file.close(),
  };
}

// Closes all logs, even if one fails; then throws the first error.
export async function closeLogs(logs: readonly Pick<AppendLog, 'close'>[]): Promise<void> {
  const results = await Promise.allSettled(logs.map((log) => log.close()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
