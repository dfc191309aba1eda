// Reads server-sent events out of the bytes of a response: one object a frame, comments left out.
import { createParser } from 'eventsource-parser';

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
  // Takes away a byte order mark at the beginning, too.
  const decoder = new TextDecoder();
  const lines = new LineEnds();
  let frames: Frame[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => frames.push({ id: id ?? null, event: event ?? 'message', data }),
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // What has no end is none: it comes again.
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

// Ends every line with LF. The parser holds back a CR at the end of a chunk, and with it the frame that it ends, until
// more comes: it may be half of CR LF.
class LineEnds {
  #afterReturn = false;

  normalize(text: string): string {
    const rest = this.#afterReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.#afterReturn = text.endsWith('\r');
    return rest.includes('\r') ? rest.replaceAll(/\r\n?/g, '\n') : rest;
  }
}
