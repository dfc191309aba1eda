// The lines that the assistant has said in this attempt, to detect an echo. Indexed only at the first lookup: most
// turns print no raw line at all.

// Enough for any real echo. Later text is not remembered, so an echo of it is shown.
const MAX_CHARS = 1024 * 1024;

export class SaidLines {
  #pending: string[] = [];
  #chars = 0;
  // The unfinished last line of a message that arrives in chunks.
  #tail = '';
  readonly #lines = new Set<string>();

  // Adds a whole message, which starts on a new line. A message that arrived in chunks before is added a second time,
  // which does not change the set.
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
