// One reader's stream of server-sent events. Frames are written only as fast as the client reads, comments keep the
// connection alive, and a client that stops reading is disconnected; it can continue by its cursor. After its token was
// revoked, a client gets no further frame.
import type { ServerResponse } from 'node:http';
import type { Timers } from '../../process/timers.js';
import { OutputPace } from './output-pace.js';

const HEARTBEAT_MS = 15_000;
// A client that has read nothing for this long is considered gone.
const STALLED_MS = 30_000;

interface StreamRules {
  // Whether the token of the client is still valid.
  readonly mayGoOn?: (() => boolean) | undefined;
  readonly pace?: OutputPace;
}

export class EventStream {
  readonly #response: ServerResponse;
  readonly #timers: Timers;
  readonly #mayGoOn: () => boolean;
  readonly #pace: OutputPace;
  #over: boolean;
  #cancelBeat: (() => void) | null = null;

  // Streams that share a pace share their part of an event-loop tick.
  constructor(
    response: ServerResponse,
    timers: Timers,
    { mayGoOn = () => true, pace = new OutputPace() }: StreamRules = {},
  ) {
    this.#pace = pace;
    this.#response = response;
    this.#timers = timers;
    this.#mayGoOn = mayGoOn;
    // A closed response emits no further event.
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
    // Sent immediately, so that the client knows that it is connected. `retry` is the reconnect delay of browsers.
    response.write('retry: 1000\n\n');
  }

  get over(): boolean {
    return this.#over;
  }

  // Whether the client has disconnected or the stream was ended here.
  onClosed(handler: () => void): void {
    this.#response.once('close', handler);
  }

  // Resolves when the client has received the frame, as far as that is visible here, and other work had its turn.
  async write(frames: Buffer | string): Promise<void> {
    if (!this.#over && !this.#mayGoOn()) this.end();
    if (this.#over) return;
    if (!this.#response.write(frames)) await this.#drained();
    await this.#pace.sent(frames.length);
  }

  #drained(): Promise<void> {
    return new Promise<void>((resolve) => {
      const cancel = this.#timers.set(STALLED_MS, () => this.#response.destroy());
      const done = (): void => {
        cancel();
        this.#response.off('drain', done).off('close', done);
        resolve();
      };
      this.#response.once('drain', done).once('close', done);
    });
  }

  // Waits for a wake-up and sends comments meanwhile. The wake-up must also come when the stream is closed.
  async idle(news: Promise<void>): Promise<void> {
    const beat = (): void => {
      void this.write(': still here\n\n');
      this.#cancelBeat = this.#timers.set(HEARTBEAT_MS, beat);
    };
    this.#cancelBeat = this.#timers.set(HEARTBEAT_MS, beat);
    await news;
    this.#cancelBeat?.();
  }

  // Written frames are still sent as long as the client reads.
  end(frame = ''): void {
    if (this.#over) return;
    this.#over = true;
    const cancel = this.#timers.set(STALLED_MS, () => this.#response.destroy());
    this.#response.once('close', cancel);
    this.#response.end(this.#mayGoOn() ? frame : '');
  }
}

// A frame with a name, for data that is not an event of a journal.
export function namedFrame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
