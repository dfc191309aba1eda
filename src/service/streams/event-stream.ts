// One reader's stream of server-sent events: frames are written as fast as it reads and no faster, a comment now and
// then keeps the connection alive, and whoever stops reading is let go of after a while; it comes back by its cursor.
// One whose token was taken away gets no further frame.
import type { ServerResponse } from 'node:http';
import type { Timers } from '../../process/timers.js';

const HEARTBEAT_MS = 15_000;
// A reader that has taken nothing for so long is gone.
const STALLED_MS = 30_000;

export class EventStream {
  readonly #response: ServerResponse;
  readonly #timers: Timers;
  readonly #mayGoOn: () => boolean;
  #over: boolean;
  #cancelBeat: (() => void) | null = null;

  constructor(response: ServerResponse, timers: Timers, mayGoOn: () => boolean = () => true) {
    this.#response = response;
    this.#timers = timers;
    this.#mayGoOn = mayGoOn;
    // Of one that is gone already no word comes.
    this.#over = response.destroyed;
    response.once('close', () => (this.#over = true));
    response.on('error', () => {});
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    // At once, so that the reader knows that it is connected. The time to wait before coming back is for browsers.
    response.write('retry: 1000\n\n');
  }

  get over(): boolean {
    return this.#over;
  }

  // The reader has gone, or the stream was ended here.
  onClosed(handler: () => void): void {
    this.#response.once('close', handler);
  }

  // Resolves when the reader has taken it, as far as can be seen from here.
  async write(frames: Buffer | string): Promise<void> {
    if (!this.#over && !this.#mayGoOn()) this.end();
    if (this.#over || this.#response.write(frames)) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#timers.set(STALLED_MS, () => this.#response.destroy());
      const done = (): void => {
        cancel();
        this.#response.off('drain', done).off('close', done);
        resolve();
      };
      this.#response.once('drain', done).once('close', done);
    });
  }

  // Waits for news, with a sign of life while there are none. They must come when the stream is closed, too.
  async idle(news: Promise<void>): Promise<void> {
    const beat = (): void => {
      void this.write(': still here\n\n');
      this.#cancelBeat = this.#timers.set(HEARTBEAT_MS, beat);
    };
    this.#cancelBeat = this.#timers.set(HEARTBEAT_MS, beat);
    await news;
    this.#cancelBeat?.();
  }

  // What was written is still sent, for as long as it is taken.
  end(frame = ''): void {
    if (this.#over) return;
    this.#over = true;
    const cancel = this.#timers.set(STALLED_MS, () => this.#response.destroy());
    this.#response.once('close', cancel);
    this.#response.end(this.#mayGoOn() ? frame : '');
  }
}

// A frame of its own name, for what is not an event of a journal.
export function namedFrame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
