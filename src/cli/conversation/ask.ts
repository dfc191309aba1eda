// Reads lines that a person types. Ctrl-C, Ctrl-D and the news that the question no longer waits are results as well.
// A pasted text of several lines is one answer, sent by Enter. Closing it restores the terminal; a signal that ends the
// process restores it as well.
import { createInterface, type Interface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { nameInLine } from '../../kernel/visible-text.js';
import { MAX_PASTE_CHARS, PASTE_OFF, PASTE_ON, PasteReader, type PasteEvent } from '../../terminal/paste.js';
import { fitLine } from '../../terminal/safe-text.js';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';

export type Typed =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'end' }
  | { readonly kind: 'news' };

// Long enough for buffered terminal input to arrive.
const SETTLE_MS = 60;
// How many lines are shown at the beginning and at the end of a long paste.
const SHOWN_LINES = 5;
const ERASE_BELOW = '\r\u001b[J';
const PRINTABLE = /^[^\p{C}]*$/u;

export class LineAsker {
  readonly #io: Io;
  readonly #reader: Interface;
  // Keys, without pastes of several lines.
  readonly #keys: PassThrough;
  readonly #pastes = new PasteReader();
  readonly #decoder = new StringDecoder('utf8');
  readonly #release: () => void;
  // Input that was typed before it was asked for.
  readonly #typed: Typed[] = [];
  // Lines that were pasted and are not sent yet.
  #pasted: string[] = [];
  #isClosed = false;
  #deliver: ((typed: Typed) => void) | null = null;
  #cancelPause: (() => void) | null = null;

  constructor(io: Io) {
    this.#io = io;
    // The line editor sets raw mode through this stream, also after the process was suspended and resumed.
    this.#keys = Object.assign(new PassThrough(), { setRawMode: (isRaw: boolean) => this.#setRawMode(isRaw) });
    this.#reader = createInterface({ input: this.#keys, output: io.stdout, terminal: true, historySize: 0 });
    this.#reader.on('line', (text) => this.#handleLine(text));
    this.#reader.on('SIGINT', () => this.#interrupt());
    this.#reader.on('close', () => {
      this.#isClosed = true;
      this.#deliverInput({ kind: 'end' });
    });
    this.#release = io.holdTerminal(() => this.#setRawMode(false));
    io.stdin.on('data', this.#onData);
    io.stdin.on('end', this.#onEnd);
    // stdin has already ended, so no more input can arrive.
    if (io.stdin.readableEnded) this.#keys.end();
    io.stdin.resume();
  }

  // Discards input from before the question was shown: it cannot be an answer to it.
  async forgetTyped(): Promise<void> {
    await new Promise<void>((resolve) => this.#io.timers.set(SETTLE_MS, resolve));
    this.#pastes.forget();
    this.#typed.length = 0;
    this.#pasted = [];
    if (!this.#isClosed) this.#emptyLine();
  }

  ask(prompt: string, news?: Promise<void>): Promise<Typed> {
    // stdin has ended, so no answer can arrive.
    if (this.#isClosed) return Promise.resolve({ kind: 'end' });
    this.#reader.setPrompt(prompt);
    this.#reader.prompt();
    const ahead = this.#typed.shift();
    if (ahead) return Promise.resolve(ahead);
    return new Promise((resolve) => {
      this.#deliver = resolve;
      void news?.then(() => this.#deliver === resolve && this.#deliverInput({ kind: 'news' }));
    });
  }

  // Restores the terminal.
  close(): void {
    this.#deliver = null;
    this.#cancelPause?.();
    this.#io.stdin.off('data', this.#onData);
    this.#io.stdin.off('end', this.#onEnd);
    this.#reader.close();
    this.#io.stdin.pause();
    this.#release();
  }

  readonly #onData = (chunk: Buffer | string): void => {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.write(chunk);
    this.#cancelPause?.();
    this.#cancelPause = null;
    this.#handle(this.#pastes.push(text));
    if (!this.#pastes.waits) return;
    this.#cancelPause = this.#io.timers.set(SETTLE_MS, () => this.#handle(this.#pastes.pause()));
  };

  readonly #onEnd = (): void => void this.#keys.end();

  #handle(events: readonly PasteEvent[]): void {
    for (const event of events) {
      if (event.kind === 'keys') this.#keys.write(event.text);
      else this.#handlePaste(event.text);
    }
  }

  // A single pasted line is treated as typed text. Of several lines, the last stays editable; the others wait for
  // Enter.
  #handlePaste(text: string | null): void {
    if (text === null) {
      const limit = MAX_PASTE_CHARS.toLocaleString('en');
      this.#notify(texts().say.pasteTooLong(limit));
      return;
    }
    const lines = text.split('\n');
    if (lines.length === 1 && PRINTABLE.test(text)) return void this.#keys.write(text);
    const before = this.#reader.line;
    this.#emptyLine();
    lines[0] = before + (lines[0] ?? '');
    const last = PRINTABLE.test(lines.at(-1) ?? '') ? (lines.pop() ?? '') : '';
    this.#pasted.push(...lines);
    const count = this.#pasted.length + (last === '' ? 0 : 1);
    const notice = texts().say.pasted(count);
    this.#notify([...this.#excerpt(), notice].join('\n'));
    if (last !== '') this.#keys.write(last);
  }

  #excerpt(): string[] {
    const lines = this.#pasted;
    const draw = (line: string): string => fitLine(`| ${nameInLine(line)}`, this.#io.terminal.columns() - 1);
    if (lines.length <= 2 * SHOWN_LINES) return lines.map(draw);
    const gap = texts().say.moreLines(lines.length - 2 * SHOWN_LINES);
    return [...lines.slice(0, SHOWN_LINES).map(draw), gap, ...lines.slice(-SHOWN_LINES).map(draw)];
  }

  #handleLine(text: string): void {
    const lines = this.#pasted;
    this.#pasted = [];
    this.#deliverInput({ kind: 'line', text: [...lines, text].join('\n') });
  }

  // The first Ctrl-C discards pasted text.
  #interrupt(): void {
    if (this.#pasted.length === 0) return this.#deliverInput({ kind: 'interrupt' });
    this.#pasted = [];
    this.#emptyLine();
    this.#notify(texts().say.pasteDiscarded);
  }

  // Prints above the prompt, then redraws the prompt.
  #notify(text: string): void {
    this.#io.stdout.write(`${ERASE_BELOW}${text.replaceAll('\n', '\r\n')}\r\n`);
    this.#reader.prompt(true);
  }

  #emptyLine(): void {
    this.#reader.write(null, { ctrl: true, name: 'e' });
    this.#reader.write(null, { ctrl: true, name: 'u' });
  }

  #setRawMode(isRaw: boolean): void {
    (this.#io.stdin as { setRawMode?: (mode: boolean) => void }).setRawMode?.(isRaw);
    this.#io.stdout.write(isRaw ? PASTE_ON : PASTE_OFF);
  }

  #deliverInput(typed: Typed): void {
    const deliver = this.#deliver;
    this.#deliver = null;
    // Without a typed line, the cursor is still on the line of the prompt.
    if (deliver && typed.kind !== 'line') this.#io.stdout.write('\n');
    if (deliver) deliver(typed);
    else this.#typed.push(typed);
  }
}
