// The replies that a client sends: a response to a question, or the end of a conversation.
import type { Question, ResponseTo } from '../journal/question-view.js';
import type { Json } from '../kernel/json.js';

interface ReplyBase {
  /** The question that is answered. A reply to any other than the open question is refused. */
  readonly interaction_id: string;
  /**
   * Idempotency key: the same reply with the same key is applied once. The client creates one if it is absent, where
   * the platform has `crypto.randomUUID`.
   */
  readonly idempotency_key?: string;
}

/** Answers a question. `answerTo` builds one whose response has the type that the question expects. */
export interface AnswerReply extends ReplyBase {
  /** The response: the `value` of an option, a text, an object with the fields, or an `ApprovalResponse`. */
  readonly response: Json;
  /** For an approval: whether you showed the whole action before the decision. The journal records it. */
  readonly review?: 'seen' | 'unread';
  /** The discriminant. */
  readonly finish?: false;
}

/** Ends a conversation in which the agent asked nothing (`channel` is `conversation`). */
export interface FinishReply extends ReplyBase {
  /** The discriminant. */
  readonly finish: true;
  /** Never present: nothing was asked. */
  readonly response?: never;
  /** Never present: nothing was asked. */
  readonly review?: never;
}

/** A reply to the open question of a run, discriminated by `finish`. */
export type Reply = AnswerReply | FinishReply;

/**
 * Builds the reply to a question, with a response of the type that its kind expects: after a check of `question.kind`,
 * the compiler accepts only decisions for an approval.
 */
export function answerTo<Q extends Question>(
  interactionId: string,
  _question: Q,
  response: ResponseTo<Q>,
): AnswerReply {
  return { interaction_id: interactionId, response: response as Json };
}
