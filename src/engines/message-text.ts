// A message put together from its pieces, up to a limit: a stream without end must not fill the memory.

const MAX_MESSAGE_CHARS = 16 * 1024 * 1024;

export class MessageText {
  #pieces: string[] = [];
  #chars = 0;
  #truncated = false;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  add(piece: string): void {
    const room = MAX_MESSAGE_CHARS - this.#chars;
    if (piece.length > room) this.#truncated = true;
    if (room > 0) this.#pieces.push(piece.slice(0, room));
    this.#chars += Math.min(piece.length, room);
  }

  take(): { text: string; truncated: boolean } {
    const taken = { text: this.#pieces.join(''), truncated: this.#truncated };
    this.#pieces = [];
    this.#chars = 0;
    this.#truncated = false;
    return taken;
  }
}
