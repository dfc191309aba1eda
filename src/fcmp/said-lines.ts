// The lines that the assistant has said in this attempt, to know an echo when one comes.
// Indexed only when somebody asks: most turns print no raw line at all.

// Enough for any real echo; beyond it nothing is remembered, so nothing is suppressed.
const MAX_CHARS = 1024 * 1024;

export class SaidLines {
  #pending: string[] = [];
  #chars = 0;
  // The unfinished last line of a message that comes in pieces.
  #tail = '';
  readonly #lines = new Set<string>();

  // A whole message. One that came in pieces is said twice; the set does not mind. It begins on a line of its own.
  addMessage(text: string): void {
    this.#remember(`\n${text}\n`);
  }

  addPiece(text: string): void {
    this.#remember(text);
  }

  has(line: string): boolean {
    this.#index();
    return this.#lines.has(line) || this.#tail.trim() === line;
  }

  clear(): void {
    this.#pending = [];
    this.#chars = 0;
    this.#tail = '';
    this.#lines.clear();
  }

  #remember(text: string): void {
    if (this.#chars + text.length > MAX_CHARS) return;
    this.#chars += text.length;
    this.#pending.push(text);
  }

  #index(): void {
    for (const text of this.#pending) {
      const lines = (this.#tail + text).split('\n');
      this.#tail = lines.pop() ?? '';
      for (const line of lines) this.#lines.add(line.trim());
    }
    this.#pending = [];
  }
}
