// One line from the other side of a JSON-RPC conversation, decoded and parsed once. Every consumer (the peer, the
// readers of events, the parser of a turn) gets the same object, so no consumer parses the line again.
import { parseJson, type Json } from '../kernel/json.js';
import { readMessage, type Message } from './read-message.js';

export interface ReceivedLine {
  /** The parsed JSON; undefined if the line is not JSON. */
  readonly json: Json | undefined;
  /** The same as a JSON-RPC message. A request message also records whether it was answered. */
  readonly message: Message;
  /** The decoded line without its line end (LF, or CR LF). */
  readonly text: string;
  /** The bytes of the line, line end included. */
  readonly bytes: Buffer;
  /** The range of `bytes` in the log. */
  readonly from: number;
  readonly to: number;
}

const LF = 0x0a;
const CR = 0x0d;

// Splits chunks into lines, independently of where the chunks end. A line of many megabytes is concatenated once, when
// its end arrives.
export class LineReader {
  readonly #deliver: (line: ReceivedLine) => void;
  // The chunks of a line whose end has not arrived.
  #held: Buffer[] = [];
  #at: number;

  // `from` is the offset of the first byte in the log.
  constructor(deliver: (line: ReceivedLine) => void, from: number) {
    this.#deliver = deliver;
    this.#at = from;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#finish(chunk.subarray(from, at + 1));
      from = at + 1;
    }
    if (from < chunk.length) this.#held.push(chunk.subarray(from));
  }

  // Delivers an unfinished last line.
  end(): void {
    if (this.#held.length > 0) this.#finish(Buffer.alloc(0));
  }

  #finish(last: Buffer): void {
    const bytes = this.#held.length === 0 ? last : Buffer.concat([...this.#held, last]);
    this.#held = [];
    const from = this.#at;
    this.#at += bytes.length;
    let end = bytes.length;
    if (bytes[end - 1] === LF) end -= 1;
    if (bytes[end - 1] === CR) end -= 1;
    const text = bytes.toString('utf8', 0, end);
    const json = parseJson(text);
    this.#deliver({ json, message: readMessage(json), text, bytes, from, to: this.#at });
  }
}
