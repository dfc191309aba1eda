// Generated from contract/fcmp.schema.json by `npm run generate`. Do not edit.
import type { Json, JsonObject } from '../kernel/json.js';

export type FcmpState = ("queued" | "running" | "waiting_user" | "succeeded" | "failed" | "canceled")
export type FcmpTrigger = ("turn.started" | "turn.needs_input" | "interaction.reply.accepted" | "interaction.auto_decide.timeout" | "turn.succeeded" | "turn.failed" | "run.canceled" | "restart.preserve_waiting" | "restart.reconcile_failed")
/**
 * ISO 8601, UTC, milliseconds
 */
export type FcmpTimestamp = string
/**
 * Any JSON value.
 */
export type FcmpJson = Json
export type FcmpInteractionKind = ("open_text" | "choose_one" | "confirm" | "fill_fields" | "approval")
/**
 * What the figures cover: one model call, this turn, or the whole conversation so far.
 */
export type FcmpUsageScope = ("step" | "turn" | "thread")

export interface FcmpData {
"conversation.started": FcmpConversationStarted
"conversation.state.changed": FcmpConversationStateChanged
"conversation.completed": FcmpConversationCompleted
"conversation.failed": FcmpConversationFailed
"conversation.canceled": FcmpConversationCanceled
"user.message": FcmpUserMessage
"user.input.required": FcmpUserInputRequired
"assistant.message.delta": FcmpAssistantMessageDelta
"assistant.message.final": FcmpAssistantMessageFinal
"assistant.reasoning": FcmpAssistantReasoning
"assistant.plan": FcmpAssistantPlan
"assistant.tool.started": FcmpAssistantToolStarted
"assistant.tool.completed": FcmpAssistantToolCompleted
"artifact.file.changed": FcmpArtifactFileChanged
usage: FcmpUsage
"interaction.reply.accepted": FcmpInteractionReplyAccepted
"interaction.auto_decide.timeout": FcmpInteractionAutoDecideTimeout
"diagnostic.warning": FcmpDiagnosticWarning
"raw.stdout": FcmpRawStdout
"raw.stderr": FcmpRawStderr
}
/**
 * The conversation starts.
 */
export interface FcmpConversationStarted {
engine: string
execution_mode: ("auto" | "interactive")
fold_version: number
}
/**
 * The run took an edge of the chart.
 */
export interface FcmpConversationStateChanged {
from: FcmpState
to: FcmpState
trigger: FcmpTrigger
updated_at: FcmpTimestamp
}
/**
 * The run succeeded.
 */
export interface FcmpConversationCompleted {
result?: FcmpJson | undefined
}
/**
 * The run failed.
 */
export interface FcmpConversationFailed {
error: FcmpError
}
/**
 * Why a run failed.
 */
export interface FcmpError {
/**
 * A code of contract/errors.json.
 */
code: string
message: string
/**
 * The values in the message, by name; `problems`: the phrases from which values were made (contract/phrases.json), with `value`, the name of the value.
 */
values?: {
[k: string]: string | number | FcmpJson[]
} | undefined
/**
 * What the caller can do about it.
 */
hint?: string | undefined
/**
 * What a program needs besides the code: `unanswered`, the question that can no longer be answered; `reason`, HOST_CRASHED_TWICE where hosts crashed twice with the run (`crashes`).
 */
details?: JsonObject | undefined
}
/**
 * The run was canceled.
 */
export interface FcmpConversationCanceled {
actor?: FcmpActor | undefined
}
/**
 * The person or the part of Parley that acted.
 */
export interface FcmpActor {
kind: ("user" | "token" | "system")
/**
 * The person, or the part of Parley.
 */
name: string
/**
 * The name of the token, if it is not the name of the person.
 */
token?: string | undefined
}
/**
 * The first message of the person.
 */
export interface FcmpUserMessage {
text: string
}
/**
 * The agent needs a person.
 */
export interface FcmpUserInputRequired {
interaction_id: string
kind: FcmpInteractionKind
prompt: string
options: FcmpOption[]
/**
 * What an approval is about: the exact command, patch or permissions.
 */
action?: JsonObject | undefined
/**
 * Digest of the action, the folder and the agent's permission, to which the decision is bound.
 */
digest?: string | undefined
/**
 * The schema of an answer, if the engine has one.
 */
response_schema?: JsonObject | undefined
fields?: FcmpField[] | undefined
default?: FcmpJson | undefined
/**
 * How the agent asked; conversation: there was no question, the turn just ended.
 */
channel?: ("native" | "tool" | "envelope" | "conversation") | undefined
}
/**
 * One offered answer.
 */
export interface FcmpOption {
label: string
value: FcmpJson
description?: string | undefined
}
/**
 * One of several questions asked in one turn.
 */
export interface FcmpField {
id: string
kind: FcmpInteractionKind
prompt: string
options: FcmpOption[]
default?: FcmpJson | undefined
}
/**
 * A piece of a message.
 */
export interface FcmpAssistantMessageDelta {
message_id: (string | null)
text: string
}
/**
 * A whole message; it replaces the pieces with the same message_id.
 */
export interface FcmpAssistantMessageFinal {
message_id: (string | null)
text: string
truncated?: boolean | undefined
}
/**
 * The agent's reasoning.
 */
export interface FcmpAssistantReasoning {
text: string
}
/**
 * The agent's list of steps, complete each time.
 */
export interface FcmpAssistantPlan {
/**
 * Items: A step.
 */
items: {
text: string
done: boolean
}[]
}
/**
 * A tool call starts.
 */
export interface FcmpAssistantToolStarted {
call_id: (string | null)
name: string
kind: ("command" | "file_change" | "mcp" | "search" | "agent" | "other")
input: FcmpJson
}
/**
 * A tool call has ended.
 */
export interface FcmpAssistantToolCompleted {
call_id: (string | null)
name: string
kind: ("command" | "file_change" | "mcp" | "search" | "agent" | "other")
status: ("completed" | "failed" | "declined")
output?: FcmpJson | undefined
error?: string | undefined
exit_code?: (number | null) | undefined
duration_ms?: number | undefined
}
/**
 * The agent changed a file.
 */
export interface FcmpArtifactFileChanged {
path: string
kind: ("add" | "update" | "delete" | "unknown")
}
/**
 * Tokens and cost.
 */
export interface FcmpUsage {
scope: FcmpUsageScope
input_tokens?: number | undefined
cached_input_tokens?: number | undefined
output_tokens?: number | undefined
reasoning_tokens?: number | undefined
total_tokens?: number | undefined
cost_usd?: number | undefined
duration_ms?: number | undefined
model?: string | undefined
}
/**
 * A person's answer was accepted.
 */
export interface FcmpInteractionReplyAccepted {
interaction_id: string
resolution_mode: "user_reply"
accepted_at: FcmpTimestamp
response?: FcmpJson | undefined
finish?: boolean | undefined
actor?: FcmpActor | undefined
/**
 * For an approval: whether the client showed all of it before the decision; absent if the client did not report it.
 */
review?: ("seen" | "unread") | undefined
}
/**
 * The question timed out, and the policy decided.
 */
export interface FcmpInteractionAutoDecideTimeout {
interaction_id: string
resolution_mode: "auto_decide_timeout"
policy: ("engine_judgement" | "use_default" | "finish" | "decline")
response?: FcmpJson | undefined
}
/**
 * A warning or note about the conversation.
 */
export interface FcmpDiagnosticWarning {
code: string
message: string
suppressed_count?: number | undefined
stream?: ("stdout" | "stderr") | undefined
terminal?: boolean | undefined
}
/**
 * Output that could not be understood.
 */
export interface FcmpRawStdout {
text: string
}
/**
 * Text from stderr.
 */
export interface FcmpRawStderr {
text: string
}

export const FCMP_TYPES = [
  "conversation.started",
  "conversation.state.changed",
  "conversation.completed",
  "conversation.failed",
  "conversation.canceled",
  "user.message",
  "user.input.required",
  "assistant.message.delta",
  "assistant.message.final",
  "assistant.reasoning",
  "assistant.plan",
  "assistant.tool.started",
  "assistant.tool.completed",
  "artifact.file.changed",
  "usage",
  "interaction.reply.accepted",
  "interaction.auto_decide.timeout",
  "diagnostic.warning",
  "raw.stdout",
  "raw.stderr"
] as const satisfies readonly (keyof FcmpData)[];
