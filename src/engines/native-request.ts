// A request that a resident engine sends to us in the middle of its turn and whose answer it waits for.
import type { RequestMessage } from '../jsonrpc/read-message.js';
import type { JsonObject } from '../kernel/json.js';
import type { Question } from '../run/interaction.js';

export interface NativeRequest {
  // Its `state` is the only record of whether the request still waits for an answer. The id is unique within one
  // process only.
  readonly message: RequestMessage;
  // Empty for a request that is refused without being read.
  readonly params: JsonObject;
  // Null: a person cannot be asked this, so it must be refused.
  readonly question: Question | null;
  // Why it must be refused, if there is no question.
  readonly refusal?: string;
}
