// Classifies one JSON value of a JSON-RPC stream. Total: a value that is none of the three kinds is unreadable, with
// the reason.
import { isObject, type Json, type JsonObject } from '../kernel/json.js';

/** The id of a JSON-RPC request. */
export type RequestId = string | number;

export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
}

// `withdrawn`: the other side no longer waits for a response, although nobody sent one.
type RequestState = 'open' | 'answered' | 'withdrawn';

export interface RequestMessage {
  readonly type: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: Json | undefined;
  // The only record of what became of the request. Only the ledger of the peer changes it; for a message that was read
  // from a log, without a peer, the reader of the log does.
  state: RequestState;
}

export type Message =
  | RequestMessage
  | { readonly type: 'notification'; readonly method: string; readonly params: Json | undefined }
  | {
      readonly type: 'response';
      readonly id: RequestId;
      readonly outcome: { readonly result: Json } | { readonly error: ErrorObject };
    }
  | { readonly type: 'unreadable'; readonly reason: string };

// `value` is the parsed line; undefined if the line is not JSON.
export function readMessage(value: Json | undefined): Message {
  if (value === undefined) return unreadable('not JSON');
  if (!isObject(value)) return unreadable('not an object');
  if ('method' in value) return readCall(value);
  return 'id' in value ? readResponse(value) : unreadable('neither a method nor an id');
}

function readCall({ method, id, params }: JsonObject): Message {
  if (typeof method !== 'string') return unreadable('the method is not a string');
  if (id === undefined) return { type: 'notification', method, params };
  return isId(id)
    ? { type: 'request', id, method, params, state: 'open' }
    : unreadable('the id is neither a string nor an exact number');
}

function readResponse(value: JsonObject): Message {
  const { id, result, error } = value;
  if (!isId(id)) return unreadable('the id is neither a string nor an exact number');
  if ('error' in value && !('result' in value && error === null)) {
    if (!isObject(error) || typeof error.code !== 'number' || typeof error.message !== 'string')
      return unreadable('the error has no code or no message');
    const { code, message, data } = error;
    return { type: 'response', id, outcome: { error: { code, message, ...(data === undefined ? {} : { data }) } } };
  }
  return result === undefined
    ? unreadable('neither a method nor a result')
    : { type: 'response', id, outcome: { result } };
}

// Rejects an integer that a number cannot hold exactly (it could not be sent back unchanged) and an infinite number
// (it would be sent back as null).
function isId(id: Json | undefined): id is RequestId {
  return (
    typeof id === 'string' ||
    (typeof id === 'number' && Number.isFinite(id) && (Number.isSafeInteger(id) || !Number.isInteger(id)))
  );
}

function unreadable(reason: string): Message {
  return { type: 'unreadable', reason };
}
