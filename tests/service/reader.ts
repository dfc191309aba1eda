// The far end of an answer, without a socket: it takes what is written, unless a test holds it back.
import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';

// Small, so that one frame fills it; the comments of a stream do not.
const HIGH_WATER_MARK = 64;

export class Reader extends Writable {
  text = '';
  // What was written although it must not be: a real answer has the same errors.
  readonly errors: Error[] = [];
  #held = false;
  #next: (() => void) | null = null;
  #waiting: { readonly text: string; readonly resolve: () => void }[] = [];

  constructor() {
    super({ highWaterMark: HIGH_WATER_MARK });
    this.on('error', (error) => this.errors.push(error));
  }

  get response(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  // The frames after the first words of a stream, without their empty lines.
  get frames(): string[] {
    return this.text.split('\n\n').slice(1, -1);
  }

  // The names of the frames, and which question each is about.
  get texts(): string[] {
    return this.frames.map((frame) =>
      [/^event: (.*)$/m.exec(frame)?.[1], /"interaction_id":"(.*?)"/.exec(frame)?.[1]]
        .filter((part) => part !== undefined)
        .join(' '),
    );
  }

  writeHead(): this {
    return this;
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#next?.();
  }

  // Resolves when it has taken this, at once if it has.
  heard(text: string): Promise<void> {
    if (this.text.includes(text)) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push({ text, resolve }));
  }

  override _write(chunk: Buffer, _encoding: string, taken: () => void): void {
    const readNext = (): void => {
      this.#next = null;
      this.text += chunk.toString();
      for (const { resolve } of this.#waiting.filter(({ text }) => this.text.includes(text))) resolve();
      this.#waiting = this.#waiting.filter(({ text }) => !this.text.includes(text));
      taken();
    };
    if (this.#held) this.#next = readNext;
    else readNext();
  }
}
