// Bytes into lines, wherever the chunks end. A line of many megabytes is put together once, when its end has come.

const LF = 0x0a;
const CR = 0x0d;

export class LineSplitter {
  readonly #give: (line: Buffer, whole: Buffer) => void;
  // The beginning of a line whose end has not come.
  #held: Buffer[] = [];

  // A line comes without its end (LF, or CR LF), and whole.
  constructor(give: (line: Buffer, whole: Buffer) => void) {
    this.#give = give;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#finish(chunk.subarray(from, at + 1));
      from = at + 1;
    }
    // A copy: the chunk is its owner's, who may use it again.
    if (from < chunk.length) this.#held.push(Buffer.from(chunk.subarray(from)));
  }

  // What has come of a line that will not end any more.
  end(): void {
    if (this.#held.length > 0) this.#finish(Buffer.alloc(0));
  }

  #finish(last: Buffer): void {
    const whole = this.#held.length === 0 ? last : Buffer.concat([...this.#held, last]);
    this.#held = [];
    const line = whole.at(-1) === LF ? whole.subarray(0, -1) : whole;
    this.#give(line.at(-1) === CR ? line.subarray(0, -1) : line, whole);
  }
}
