// The lines of the server as callers of the library get them.
import type { Message } from '../jsonrpc/read-message.js';
import type { ReceivedLine } from '../jsonrpc/received-line.js';
import { endAtOnce, type LineFeed } from '../process/line-feed.js';

type WithoutState<M> = M extends unknown ? Omit<M, 'state'> : never;

/** A line of the server: a request, a notification, a response, or unreadable; `type` is the discriminant. */
export type ServerEvent = WithoutState<Message> & {
  /** The decoded line without its line end. */
  readonly raw: string;
  /** The bytes of the line, line end included. */
  readonly bytes: Buffer;
  /** Where the line begins in events.jsonl, in bytes. */
  readonly from: number;
  /** Where the line ends in events.jsonl, in bytes. */
  readonly to: number;
};

/** Which events to read. */
export interface EventOptions {
  /** Where in events.jsonl to begin: `to` of the last event that you have read; by default the end of the file. */
  readonly from?: number;
  /** Ends the iterator. */
  readonly signal?: AbortSignal;
}

export function readEvents(feed: LineFeed, { from, signal }: EventOptions = {}): AsyncGenerator<ServerEvent, void> {
  return endAtOnce((stop) => toEvents(feed.read({ ...(from === undefined ? {} : { from }), signal: stop })), signal);
}

async function* toEvents(lines: AsyncIterable<ReceivedLine>): AsyncGenerator<ServerEvent, void> {
  for await (const { message, text, bytes, from, to } of lines) {
    const { state: _, ...shown } = { state: undefined, ...message };
    yield { ...(shown as WithoutState<Message>), raw: text, bytes, from, to };
  }
}
