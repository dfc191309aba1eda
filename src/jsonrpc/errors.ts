// The errors with which a request can fail.
import type { Json } from '../kernel/json.js';
import type { ErrorObject } from './read-message.js';

/** The other side responded with an error. */
export class JsonRpcError extends Error {
  /** The name of this class. */
  override readonly name = 'JsonRpcError';
  /** The method of the request. */
  readonly method: string;
  /** The error code of the response. */
  readonly code: number;
  /** Further data of the response. */
  readonly data: Json | undefined;

  /** Creates the error from the `error` member of a response. */
  constructor(method: string, { code, message, data }: ErrorObject) {
    super(message);
    this.method = method;
    this.code = code;
    this.data = data;
  }
}

/** No response arrived in time. Whether the request had an effect is unknown. */
export class RequestTimeoutError extends Error {
  /** The name of this class. */
  override readonly name = 'RequestTimeoutError';
  /** The method of the request. */
  readonly method: string;

  /** Creates the error for a request that waited this many milliseconds. */
  constructor(method: string, ms: number) {
    super(`${method} was not answered within ${ms} ms`);
    this.method = method;
  }
}

/** The other side exited before it responded. */
export class PeerEndedError extends Error {
  /** The name of this class. */
  override readonly name = 'PeerEndedError';
}
