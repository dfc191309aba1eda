// What a command may touch of the outside, as arguments; and how it ends.
import type { Readable, Writable } from 'node:stream';
import { once } from 'node:events';
import type { Clock } from '../kernel/clock.js';

export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly clock: Clock;
}

export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

// Gathers lines and writes them in large pieces; waits while the reader is slow, so nothing piles up.
export class LineWriter {
  readonly #stream: Writable;
  #pending: Buffer[] = [];

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  addLine(line: string): void {
    this.#pending.push(Buffer.from(`${line}\n`));
  }

  // Bytes that are whole lines already.
  addBytes(lines: Buffer): void {
    this.#pending.push(lines);
  }

  async flush(): Promise<void> {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    if (!this.#stream.write(bytes)) await once(this.#stream, 'drain');
  }
}
