// Bytes into lines, wherever the chunks end. A line of many megabytes is put together once, when its end has come.

const LF = 0x0a;
const CR = 0x0d;

export class LineSplitter {
  readonly #give: (line: Buffer, bytes: number) => void;
  // The beginning of a line whose end has not come.
  #held: Buffer[] = [];

  // A line comes without its end (LF, or CR LF); `bytes` counts that too.
  constructor(give: (line: Buffer, bytes: number) => void) {
    this.#give = give;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#finish(chunk.subarray(from, at), 1);
      from = at + 1;
    }
    // A copy: the chunk is its owner's, who may use it again.
    if (from < chunk.length) this.#held.push(Buffer.from(chunk.subarray(from)));
  }

  // What has come of a line that will not end any more.
  end(): void {
    if (this.#held.length > 0) this.#finish(Buffer.alloc(0), 0);
  }

  #finish(last: Buffer, ending: number): void {
    const line = this.#held.length === 0 ? last : Buffer.concat([...this.#held, last]);
    this.#held = [];
    this.#give(line.at(-1) === CR ? line.subarray(0, -1) : line, line.length + ending);
  }
}
