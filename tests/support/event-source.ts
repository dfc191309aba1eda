// Reads a stream as a browser's EventSource does: reconnects with Last-Event-ID after every disconnect, until it is
// stopped.
import { get, type IncomingMessage } from 'node:http';

export interface SourceOptions {
  readonly token: string;
  readonly cursor?: number;
  // The data as raw bytes.
  readonly onEvent: (seq: number, data: Buffer) => void;
  // How long to pause after so many events; null: no pause.
  readonly pace?: (events: number) => number | null;
}

// Resolves with the number of connections.
export async function readAsBrowser(
  url: string,
  { token, cursor = 0, onEvent, pace = () => null }: SourceOptions,
): Promise<number> {
  let last: number | null = null;
  for (let connections = 1; ; connections += 1) {
    const over = await new Promise<boolean>((resolve) => {
      let ended = false;
      const lost = (): void => resolve(ended);
      const request = get(
        `${url}?cursor=${cursor}`,
        {
          agent: false,
          headers: { authorization: `Bearer ${token}`, ...(last === null ? {} : { 'last-event-id': String(last) }) },
        },
        (response) => {
          if (response.statusCode === 204) return resolve(true);
          if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`);
          response.on('error', lost).on('close', lost);
          readFrames(response, pace, (frame) => {
            if (frame.subarray(0, 4).toString('latin1') === 'id: ') {
              const end = frame.indexOf(0x0a);
              last = Number(frame.toString('latin1', 4, end));
              onEvent(last, frame.subarray(end + 7));
            } else if (frame.toString('latin1').startsWith('event: end')) {
              ended = true;
            }
          });
        },
      );
      request.on('error', lost);
    });
    if (over) return connections;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function readFrames(
  response: IncomingMessage,
  pace: (events: number) => number | null,
  onFrame: (frame: Buffer) => void,
): void {
  let rest = Buffer.alloc(0);
  response.on('data', (chunk: Buffer) => {
    const bytes = Buffer.concat([rest, chunk]);
    let at = 0;
    let frames = 0;
    for (let end = bytes.indexOf('\n\n'); end >= 0; end = bytes.indexOf('\n\n', at)) {
      onFrame(bytes.subarray(at, end));
      frames += 1;
      at = end + 2;
    }
    rest = bytes.subarray(at);
    const ms = frames > 0 ? pace(frames) : null;
    if (ms === null) return;
    response.pause();
    setTimeout(() => response.resume(), ms);
  });
}
