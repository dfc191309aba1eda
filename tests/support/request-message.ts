// A request of the other side in its received form: open.
import type { RequestId, RequestMessage } from '../../src/jsonrpc/read-message.js';
import type { Json } from '../../src/kernel/json.js';

export function requestMessage(id: RequestId, method: string, params: Json): RequestMessage {
  return { type: 'request', id, method, params, state: 'open' };
}
