// The lines that the assistant has said in this attempt, to detect an echo. Indexed only at the first lookup: most
// turns print no raw line at all. Until then, the text is in an array of numbers, not in strings: hundreds of runs
// would keep millions of short strings, which the garbage collector copies and visits again and again.

// Enough for any real echo. Later text is not remembered, so an echo of it is shown.
const MAX_CHARS = 1024 * 1024;
const INITIAL_CHARS = 1024;
const LINE_FEED = 0x0a;
// String.fromCharCode gets so many arguments at once.
const DECODED_CHARS = 8192;

export class SaidLines {
  // The UTF-16 units that are not indexed yet.
  #pending = new Uint16Array(0);
  #length = 0;
  // How many units were remembered, indexed or not.
  #chars = 0;
  // The unfinished last line of a message that arrives in chunks.
  #tail = '';
  readonly #lines = new Set<string>();

  // Adds a whole message, which starts on a new line. A message that arrived in chunks before is added a second time,
  // which does not change the set.
  addMessage(text: string): void {
    if (!this.#reserve(text.length + 2)) return;
    this.#pending[this.#length++] = LINE_FEED;
    this.#write(text);
    this.#pending[this.#length++] = LINE_FEED;
  }

  addPiece(text: string): void {
    if (this.#reserve(text.length)) this.#write(text);
  }

  has(line: string): boolean {
    this.#index();
    return this.#lines.has(line) || this.#tail.trim() === line;
  }

  clear(): void {
    this.#pending = new Uint16Array(0);
    this.#length = 0;
    this.#chars = 0;
    this.#tail = '';
    this.#lines.clear();
  }

  // Returns whether so many more units are remembered.
  #reserve(count: number): boolean {
    if (this.#chars + count > MAX_CHARS) return false;
    this.#chars += count;
    const need = this.#length + count;
    if (need > this.#pending.length) {
      const grown = new Uint16Array(Math.max(need, 2 * this.#pending.length, INITIAL_CHARS));
      grown.set(this.#pending.subarray(0, this.#length));
      this.#pending = grown;
    }
    return true;
  }

  #write(text: string): void {
    const pending = this.#pending;
    const start = this.#length;
    for (let at = 0; at < text.length; at += 1) pending[start + at] = text.charCodeAt(at);
    this.#length = start + text.length;
  }

  #index(): void {
    if (this.#length === 0) return;
    let text = this.#tail;
    for (let at = 0; at < this.#length; at += DECODED_CHARS)
      text += String.fromCharCode(...this.#pending.subarray(at, Math.min(at + DECODED_CHARS, this.#length)));
    this.#length = 0;
    const lines = text.split('\n');
    this.#tail = lines.pop() ?? '';
    for (const line of lines) this.#lines.add(line.trim());
  }
}
