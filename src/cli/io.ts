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

// A mistake in how the command was called: said in one line, exit code 2.
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

// Gathers lines and writes them in large pieces; waits while the reader is slow, so nothing piles up.
export class LineWriter {
  readonly #stream: Writable;
  #lines: string[] = [];

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  add(line: string): void {
    this.#lines.push(line);
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    if (!this.#stream.write(text)) await once(this.#stream, 'drain');
  }
}
