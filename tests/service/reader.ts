// The reader's side of a response, without a socket: it reads at once, unless a test blocks it.
import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';

// Small, so that one frame fills it; the comments of a stream do not.
const HIGH_WATER_MARK = 64;

export class Reader extends Writable {
  text = '';
  // Writes after the end: a real response has the same errors.
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

  // The frames after the first line of a stream, without their empty lines.
  get frames(): string[] {
    return this.text.split('\n\n').slice(1, -1);
  }

  // The names of the frames, with their questions.
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

  // Resolves when it has read this, at once if it already has.
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
