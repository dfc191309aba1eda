// The named conditions of the chart: pure functions of facts that the caller has looked up.
import type { GuardName } from '../contract/chart-names.js';

export interface GuardFacts {
  // A pending interaction is stored, or is being stored in the same transaction.
  readonly pending: boolean;
  // A valid session handle is stored, or is being stored in the same transaction.
  readonly handle: boolean;
  // interactive_require_user_reply: true means that a timeout never decides.
  readonly requireUserReply: boolean;
  // The run waits on a resident process.
  readonly sticky: boolean;
}

// For events whose edge has no guard, and as the ground to state facts on.
export const NO_FACTS: GuardFacts = { pending: false, handle: false, requireUserReply: true, sticky: false };

export const GUARDS: Readonly<Record<GuardName, (facts: GuardFacts) => boolean>> = {
  pending_and_handle: (facts) => facts.pending && facts.handle,
  not_pending_and_handle: (facts) => !(facts.pending && facts.handle),
  reply_not_required: (facts) => !facts.requireUserReply,
  sticky: (facts) => facts.sticky,
};
