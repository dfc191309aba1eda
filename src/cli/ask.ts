// Asks a person on the terminal, line by line. Ctrl-C and Ctrl-D are answers too, and so is news that makes the question idle.
import { createInterface, type Interface } from 'node:readline';
import type { Io } from './io.js';

export type Typed = { readonly kind: 'line'; readonly text: string } | { readonly kind: 'interrupt' } | { readonly kind: 'end' } | { readonly kind: 'news' };

// Long enough for what the terminal holds to arrive.
const SETTLE_MS = 60;

export class LineAsker {
  readonly #io: Io;
  readonly #reader: Interface;
  // What was typed ahead.
  readonly #typed: Typed[] = [];
  #take: ((typed: Typed) => void) | null = null;

  constructor(io: Io) {
    this.#io = io;
    this.#reader = createInterface({ input: io.stdin, output: io.stdout, terminal: true, historySize: 0 });
    this.#reader.on('line', (text) => this.#give({ kind: 'line', text }));
    this.#reader.on('SIGINT', () => this.#give({ kind: 'interrupt' }));
    this.#reader.on('close', () => this.#give({ kind: 'end' }));
  }

  // What was typed before there was a question is no answer to it: it is taken off the terminal and forgotten.
  async forgetTyped(): Promise<void> {
    await new Promise<void>((resolve) => this.#io.timers.set(SETTLE_MS, resolve));
    this.#typed.length = 0;
    this.#reader.write(null, { ctrl: true, name: 'e' });
    this.#reader.write(null, { ctrl: true, name: 'u' });
  }

  ask(prompt: string, news?: Promise<void>): Promise<Typed> {
    this.#reader.setPrompt(prompt);
    this.#reader.prompt();
    const ahead = this.#typed.shift();
    if (ahead) return Promise.resolve(ahead);
    return new Promise((resolve) => {
      this.#take = resolve;
      void news?.then(() => this.#take === resolve && this.#give({ kind: 'news' }));
    });
  }

  // The terminal is as it was before.
  close(): void {
    this.#take = null;
    this.#reader.close();
    this.#io.stdin.pause();
  }

  #give(typed: Typed): void {
    const take = this.#take;
    this.#take = null;
    // Whatever comes instead of a line leaves the cursor behind the prompt.
    if (take && typed.kind !== 'line') this.#io.stdout.write('\n');
    if (take) take(typed);
    else this.#typed.push(typed);
  }
}
