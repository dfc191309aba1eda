// Generated from contract/run.statechart.json and contract/sticky.json by `npm run generate`. Do not edit.

export type RunState =
  | "queued"
  | "running"
  | "waiting_user"
  | "succeeded"
  | "failed"
  | "canceled";

export type RunEvent =
  | "turn.started"
  | "turn.needs_input"
  | "interaction.reply.accepted"
  | "interaction.auto_decide.timeout"
  | "turn.succeeded"
  | "turn.failed"
  | "run.canceled"
  | "restart.preserve_waiting"
  | "restart.reconcile_failed";

export type GuardName =
  | "pending_and_handle"
  | "not_pending_and_handle"
  | "reply_not_required"
  | "sticky";
