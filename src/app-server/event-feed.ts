// What the server has said, for any number of readers. Each reads the recording at its own pace from its own place: a
// slow one holds up nobody and keeps nothing in memory but the line it is at.
import { openFile } from '../files/read-file.js';
import { LineSplitter } from '../jsonrpc/line-splitter.js';
import { readMessage, type Message } from '../jsonrpc/read-message.js';

// `raw` is the line as it came, `bytes` the same with its end; it lies at [from, to) in events.jsonl.
export type ServerEvent = Message & {
  readonly raw: string;
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
};

export interface EventOptions {
  // Where in events.jsonl to begin (`to` of the last event one had); without it, with what comes from now on.
  readonly from?: number;
  // Ends the iterator.
  readonly signal?: AbortSignal;
}

const READ_BYTES = 64 * 1024;

export class EventFeed {
  readonly #path: string;
  // Up to here the recording holds whole lines that the library itself has taken notice of.
  #published: number;
  #ended = false;
  readonly #waiting = new Set<() => void>();

  constructor(path: string, published: number) {
    this.#path = path;
    this.#published = published;
  }

  publish(upTo: number): void {
    this.#published = upTo;
    this.#wake();
  }

  // With what may be there of a line that was cut off.
  end(upTo: number): void {
    this.#ended = true;
    this.publish(upTo);
  }

  // The place is that of the call, not of the first look.
  read({ from = this.#published, signal }: EventOptions = {}): AsyncGenerator<ServerEvent, void, undefined> {
    const stop = new AbortController();
    const events = this.#read(from, signal ? AbortSignal.any([signal, stop.signal]) : stop.signal);
    // By itself it would wait for the event that is being waited for.
    const end = events.return.bind(events);
    events.return = (value) => {
      stop.abort();
      return end(value);
    };
    return events;
  }

  async *#read(from: number, signal: AbortSignal | undefined): AsyncGenerator<ServerEvent, void, undefined> {
    const wake = (): void => this.#wake();
    signal?.addEventListener('abort', wake);
    try {
      let lines: ServerEvent[] = [];
      let lineStart = from;
      const splitter = new LineSplitter((line, bytes) => {
        const raw = line.toString('utf8');
        const to = lineStart + bytes.length;
        lines.push({ ...readMessage(raw), raw, bytes, from: lineStart, to });
        lineStart = to;
      });
      let at = from;
      while (true) {
        const isLast = this.#ended && at >= this.#published;
        if (isLast) splitter.end();
        else if (at < this.#published) {
          const chunk = await this.#chunk(at);
          at += chunk.length;
          splitter.push(chunk);
        } else await this.#more(signal);
        const ready = lines;
        lines = [];
        for (const event of ready) {
          if (signal?.aborted) return;
          yield event;
        }
        if (isLast || signal?.aborted) return;
      }
    } finally {
      signal?.removeEventListener('abort', wake);
    }
  }

  // Opened each time, so that a reader whom everybody has forgotten holds nothing.
  async #chunk(at: number): Promise<Buffer> {
    const file = await openFile(this.#path);
    if (!file) throw new Error(`${this.#path} is gone`);
    try {
      const wanted = Math.min(READ_BYTES, this.#published - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
      if (bytesRead === 0) throw new Error(`${this.#path} is shorter than what was written to it`);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  // Called when there is nothing, in the same moment.
  #more(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.add(resolve));
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
