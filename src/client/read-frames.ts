// Reads server-sent events out of the bytes of a response: one object a frame, comments left out.

export interface Frame {
  readonly id: string | null;
  // "message" where it has no name.
  readonly event: string;
  readonly data: string;
}

export async function* readFrames(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<readonly Frame[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const text = rest + decoder.decode(value, { stream: true });
      const end = text.lastIndexOf('\n\n');
      if (end < 0) {
        rest = text;
        continue;
      }
      rest = text.slice(end + 2);
      const frames = text.slice(0, end).split('\n\n').map(parseFrame).filter((frame) => frame !== null);
      if (frames.length > 0) yield frames;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parseFrame(text: string): Frame | null {
  let id: string | null = null;
  let event = 'message';
  const data: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('data: ')) data.push(line.slice(6));
    else if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) event = line.slice(7);
  }
  return data.length === 0 ? null : { id, event, data: data.join('\n') };
}
