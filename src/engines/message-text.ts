// A message put together from its pieces, up to a limit: a stream without end must not fill the memory.

const MAX_MESSAGE_CHARS = 16 * 1024 * 1024;

export interface WholeMessage {
  readonly text: string;
  // The text as JSON, put together from the pieces' own.
  readonly literal: string;
  readonly truncated: true | undefined;
}

export class MessageText {
  #texts: string[] = [];
  #literals: string[] = [];
  #chars = 0;
  #truncated = false;

  get isEmpty(): boolean {
    return this.#chars === 0 && !this.#truncated;
  }

  // A piece, and the same as JSON text.
  add(text: string, literal: string): void {
    this.#truncated ||= this.#chars + literal.length > MAX_MESSAGE_CHARS;
    if (this.#truncated) return;
    this.#texts.push(text);
    this.#literals.push(literal.slice(1, -1));
    this.#chars += literal.length;
  }

  take(): WholeMessage {
    const taken = { text: this.#texts.join(''), literal: `"${this.#literals.join('')}"`, truncated: this.#truncated ? (true as const) : undefined };
    this.#texts = [];
    this.#literals = [];
    this.#chars = 0;
    this.#truncated = false;
    return taken;
  }
}
