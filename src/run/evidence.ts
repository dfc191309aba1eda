// What a turn's output shows, as far as a parser can tell. Evidence only; the judgement is made elsewhere.
import type { Json } from '../kernel/json.js';
import type { Question } from './interaction.js';

export interface EngineFailure {
  // The engine is not logged in, the service refuses more requests for now, the service failed or cannot be reached,
  // the service rejected the request itself, a limit of the engine was reached, or anything else.
  readonly kind: 'auth' | 'rate_limit' | 'service' | 'request' | 'limit' | 'turn';
  readonly message: string;
}

export interface TurnEvidence {
  // The session id that the output names, in a form that can be resumed; null if there is none.
  readonly sessionId: string | null;
  // The engine's own sign of success was seen, and nothing that contradicts it.
  readonly success: boolean;
  // The engine's own word that the turn failed.
  readonly failure: EngineFailure | null;
  // Why the sign of success is missing, where the output tells: a reason code.
  readonly unfinished: string | null;
  readonly questions: readonly Question[];
  // What the question tool answered each of its calls: the nonce that it named, or null.
  readonly receipts?: readonly (string | null)[];
  // The agent's done marker, with its result.
  readonly done: { readonly result: Json } | null;
  readonly lastMessage: string | null;
  // A printed line that sounds like the reason; it explains a process that failed, but is no evidence that it did.
  readonly complaint: EngineFailure | null;
}
