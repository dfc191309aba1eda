// Reads server-sent events from the bytes of a response: one object per frame, without comments.
import { createParser } from 'eventsource-parser';

export interface Frame {
  readonly id: string | null;
  // "message" if the frame has no name.
  readonly event: string;
  readonly data: string;
}

export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<readonly Frame[]> {
  const reader = body.getReader();
  // Also removes a byte order mark at the start.
  const decoder = new TextDecoder();
  const lines = new LineEnds();
  let frames: Frame[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => frames.push({ id: id ?? null, event: event ?? 'message', data }),
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // Discards an incomplete last frame: the server sends it again after the reconnect.
      if (done) return;
      onBytes();
      parser.feed(lines.normalize(decoder.decode(value, { stream: true })));
      if (frames.length === 0) continue;
      yield frames;
      frames = [];
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

// Ends every line with LF. A CR at the end of a chunk may be half of CR LF, so the parser would delay that line, and
// the frame that it completes, until the next chunk.
class LineEnds {
  #afterReturn = false;

  normalize(text: string): string {
    const rest = this.#afterReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.#afterReturn = text.endsWith('\r');
    return rest.includes('\r') ? rest.replaceAll(/\r\n?/g, '\n') : rest;
  }
}
