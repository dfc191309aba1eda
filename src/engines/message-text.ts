// A message assembled from its pieces, up to a limit, so that an endless stream cannot fill the memory.

// Above any real answer; the longest recorded one has 3 MB.
const MAX_MESSAGE_CHARS = 4 * 1024 * 1024;

export interface WholeMessage {
  readonly text: string;
  readonly truncated: true | undefined;
  // The text as JSON, if the pieces came with their JSON text.
  readonly literal: string | undefined;
}

export class MessageText {
  #texts: string[] = [];
  #literals: string[] = [];
  #chars = 0;
  #truncated = false;

  get isEmpty(): boolean {
    return this.#texts.length === 0 && !this.#truncated;
  }

  // Adds a piece with its JSON text, if available.
  add(text: string, literal?: string): void {
    this.#truncated ||= this.#chars + text.length > MAX_MESSAGE_CHARS;
    if (this.#truncated) return;
    this.#texts.push(text);
    if (literal !== undefined) this.#literals.push(literal.slice(1, -1));
    this.#chars += text.length;
  }

  drain(): WholeMessage {
    const complete = this.#literals.length === this.#texts.length;
    const taken = {
      text: this.#texts.join(''),
      truncated: this.#truncated ? (true as const) : undefined,
      literal: complete ? `"${this.#literals.join('')}"` : undefined,
    };
    this.#texts = [];
    this.#literals = [];
    this.#chars = 0;
    this.#truncated = false;
    return taken;
  }
}
