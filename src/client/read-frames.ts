// Reads server-sent events out of the bytes of a response: one object a frame, comments left out. By the standard, not
// by what our server sends: whatever stands between may end lines with CR LF and leave out spaces.

export interface Frame {
  readonly id: string | null;
  // "message" where it has no name.
  readonly event: string;
  readonly data: string;
}

export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<readonly Frame[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const frames = new FrameReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // What has no end is none: it comes again.
      if (done) return;
      onBytes();
      const whole = frames.push(decoder.decode(value, { stream: true }));
      if (whole.length > 0) yield whole;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

class FrameReader {
  // The beginning of a line whose end has not come, in pieces: a long one is put together once.
  #held: string[] = [];
  // The last chunk ended with CR: an LF after it belongs to it.
  #afterReturn = false;
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  push(text: string): Frame[] {
    const rest = this.#afterReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.#afterReturn = text.endsWith('\r');
    const lines = rest.includes('\r') ? rest.split(/\r\n|\r|\n/) : rest.split('\n');
    const last = lines.pop() ?? '';
    const frames: Frame[] = [];
    for (const line of lines) {
      const frame = this.#take(this.#held.length === 0 ? line : this.#held.splice(0).join('') + line);
      if (frame) frames.push(frame);
    }
    if (last !== '') this.#held.push(last);
    return frames;
  }

  #take(line: string): Frame | null {
    if (line === '') return this.#finish();
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    return null;
  }

  #finish(): Frame | null {
    const frame =
      this.#data.length === 0
        ? null
        : { id: this.#id, event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') };
    this.#id = null;
    this.#event = '';
    this.#data = [];
    return frame;
  }
}
