// Why a request was not answered with a result.
import type { Json } from '../kernel/json.js';
import type { ErrorObject } from './read-message.js';

// The other side said no.
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';
  readonly method: string;
  readonly code: number;
  readonly data: Json | undefined;

  constructor(method: string, { code, message, data }: ErrorObject) {
    super(message);
    this.method = method;
    this.code = code;
    this.data = data;
  }
}

// It said nothing in time. Whether it did what was asked is not known.
export class RequestTimeoutError extends Error {
  override readonly name = 'RequestTimeoutError';
  readonly method: string;

  constructor(method: string, ms: number) {
    super(`${method} was not answered within ${ms} ms`);
    this.method = method;
  }
}

// It is gone.
export class PeerEndedError extends Error {
  override readonly name = 'PeerEndedError';
}
