// Generated from contract/rasp.schema.json by `npm run generate`. Do not edit.
import type { Json, JsonObject } from '../kernel/json.js';

export type RaspState = ("queued" | "running" | "waiting_user" | "succeeded" | "failed" | "canceled")
export type RaspTrigger = ("turn.started" | "turn.needs_input" | "interaction.reply.accepted" | "interaction.auto_decide.timeout" | "turn.succeeded" | "turn.failed" | "run.canceled" | "restart.preserve_waiting" | "restart.reconcile_failed")
/**
 * ISO 8601, UTC, milliseconds
 */
export type RaspTimestamp = string
/**
 * Any JSON value.
 */
export type RaspJson = Json
/**
 * What the figures cover: one model call, this turn, or the whole conversation so far.
 */
export type RaspUsageScope = ("step" | "turn" | "thread")
export type RaspInteractionKind = ("open_text" | "choose_one" | "confirm" | "fill_fields" | "approval")

export interface RaspData {
"lifecycle.run.created": RaspLifecycleRunCreated
"lifecycle.state.changed": RaspLifecycleStateChanged
"lifecycle.turn.started": RaspLifecycleTurnStarted
"lifecycle.process.spawned": RaspLifecycleProcessSpawned
"lifecycle.process.ended": RaspLifecycleProcessEnded
"lifecycle.session.bound": RaspLifecycleSessionBound
"lifecycle.session.confirmed": RaspLifecycleSessionConfirmed
"lifecycle.cancel.requested": RaspLifecycleCancelRequested
"lifecycle.engine.progress": RaspLifecycleEngineProgress
"lifecycle.turn.silent": RaspLifecycleTurnSilent
"lifecycle.turn.ended": RaspLifecycleTurnEnded
"agent.message.delta": RaspAgentMessageDelta
"agent.message.final": RaspAgentMessageFinal
"agent.reasoning": RaspAgentReasoning
"agent.plan": RaspAgentPlan
"agent.usage": RaspAgentUsage
"tool.call.started": RaspToolCallStarted
"tool.call.updated": RaspToolCallUpdated
"tool.call.completed": RaspToolCallCompleted
"artifact.file.changed": RaspArtifactFileChanged
"artifact.result.written": RaspArtifactResultWritten
"interaction.requested": RaspInteractionRequested
"interaction.reply.accepted": RaspInteractionReplyAccepted
"interaction.auto_decide.timeout": RaspInteractionAutoDecideTimeout
"interaction.approval.applied": RaspInteractionApprovalApplied
"diagnostic.parser.warning": RaspDiagnosticParserWarning
"diagnostic.engine.warning": RaspDiagnosticEngineWarning
"diagnostic.engine.error": RaspDiagnosticEngineError
"diagnostic.completion.unknown": RaspDiagnosticCompletionUnknown
"raw.stdout": RaspRawStdout
"raw.stderr": RaspRawStderr
}
/**
 * The run was accepted.
 */
export interface RaspLifecycleRunCreated {
engine: string
execution_mode: ("auto" | "interactive")
prompt: string
request_id?: string | undefined
cwd?: string | undefined
model?: string | undefined
permission?: ("read-only" | "workspace-write" | "full") | undefined
labels?: {
[k: string]: string
} | undefined
runtime_options?: JsonObject | undefined
output_schema?: JsonObject | undefined
continue_from?: string | undefined
/**
 * The run whose conversation was copied at the start.
 */
fork_from?: string | undefined
/**
 * The run that a stop of Parley interrupted and that this one repeats (recovery.running).
 */
retry_of?: string | undefined
session?: RaspSessionHandle | undefined
/**
 * The events contain everything that the database rows store about sessions. Absent in runs of earlier versions.
 */
fold_version?: number | undefined
actor?: RaspActor | undefined
}
/**
 * The session that a later turn resumes.
 */
export interface RaspSessionHandle {
session_id: string
/**
 * process: only the process that is still running has the session.
 */
handle_type: ("session_id" | "process")
created_at_attempt: number
}
/**
 * The person or the part of Parley that acted.
 */
export interface RaspActor {
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
 * The run took an edge of the chart.
 */
export interface RaspLifecycleStateChanged {
from: RaspState
to: RaspState
trigger: RaspTrigger
updated_at: RaspTimestamp
error?: RaspError | undefined
result?: RaspJson | undefined
actor?: RaspActor | undefined
}
/**
 * Why a run failed.
 */
export interface RaspError {
/**
 * A code of contract/errors.json.
 */
code: string
message: string
/**
 * The values in the message, by name; `problems`: the phrases from which values were made (contract/phrases.json), with `value`, the name of the value.
 */
values?: {
[k: string]: string | number | RaspJson[]
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
 * A turn starts; secrets in argv are replaced.
 */
export interface RaspLifecycleTurnStarted {
argv: string[]
resumed: boolean
engine_version?: (string | null) | undefined
cwd?: string | undefined
}
/**
 * The engine process was started.
 */
export interface RaspLifecycleProcessSpawned {
pid: number
start_time: string
}
/**
 * A process that outlived its last turn has exited: the output since then.
 */
export interface RaspLifecycleProcessEnded {
streams: RaspStreams
}
/**
 * Bytes and hashes.
 */
export interface RaspStreams {
stdout: RaspReadBytes
stderr: RaspReadBytes
}
/**
 * The part of one stream that was read.
 */
export interface RaspReadBytes {
/**
 * The offset in the log, if it is not 0: a process that serves several turns has one log for all of them.
 */
from?: number | undefined
bytes: number
sha256: string
}
/**
 * The engine named its session.
 */
export interface RaspLifecycleSessionBound {
session_id: string
handle_type: "session_id"
model?: string | undefined
}
/**
 * The session was found in the engine's files, or its process still runs. Later turns resume this session.
 */
export interface RaspLifecycleSessionConfirmed {
session: RaspSessionHandle
}
/**
 * A cancel request reached the running turn. The turn ends next; after a crash, recovery cancels the run.
 */
export interface RaspLifecycleCancelRequested {
requested_at: RaspTimestamp
actor?: RaspActor | undefined
}
/**
 * The engine reported a step without content.
 */
export interface RaspLifecycleEngineProgress {
phase: string
reason?: string | undefined
}
/**
 * The engine prints nothing, and the turn continues. Its ts is that of the event before it, when the silence began; reported once until the next output.
 */
export interface RaspLifecycleTurnSilent {
noticed_at: RaspTimestamp
silent_sec: number
/**
 * A tool call is known to be running.
 */
tool_running: boolean
}
/**
 * The turn has ended: how, why, and which output was read.
 */
export interface RaspLifecycleTurnEnded {
/**
 * How the process ended.
 */
exit: {
code: (number | null)
signal: (string | null)
}
/**
 * The judgement.
 */
completion: {
result: ("completed" | "awaiting_user_input" | "interrupted" | "unknown")
reason_code: string
}
streams: RaspStreams
/**
 * The parser's counts for stdout.
 */
parser: {
profile: string
/**
 * stdout units (non-blank lines, or one document)
 */
units: number
parsed: number
/**
 * units kept as raw
 */
fallbacks: number
hit_rate: (number | null)
warnings: {
[k: string]: number
}
}
digest?: (string | null) | undefined
}
/**
 * A piece of the reply, in order; correlation.item_id groups the pieces.
 */
export interface RaspAgentMessageDelta {
text: string
}
/**
 * One whole message of the agent.
 */
export interface RaspAgentMessageFinal {
text: string
truncated?: boolean | undefined
}
/**
 * The agent's reasoning, as far as the engine reports it.
 */
export interface RaspAgentReasoning {
text: string
}
/**
 * The agent's list of steps, complete each time.
 */
export interface RaspAgentPlan {
/**
 * Items: A step.
 */
items: {
text: string
done: boolean
}[]
}
/**
 * Tokens and cost.
 */
export interface RaspAgentUsage {
scope: RaspUsageScope
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
 * The agent calls a tool.
 */
export interface RaspToolCallStarted {
name: string
kind: ("command" | "file_change" | "mcp" | "search" | "agent" | "other")
input: RaspJson
}
/**
 * A tool call continues.
 */
export interface RaspToolCallUpdated {
name: string
kind: ("command" | "file_change" | "mcp" | "search" | "agent" | "other")
output?: string | undefined
}
/**
 * A tool call has ended.
 */
export interface RaspToolCallCompleted {
name: string
kind: ("command" | "file_change" | "mcp" | "search" | "agent" | "other")
status: ("completed" | "failed" | "declined")
output?: RaspJson | undefined
error?: string | undefined
exit_code?: (number | null) | undefined
duration_ms?: number | undefined
}
/**
 * The agent changed a file.
 */
export interface RaspArtifactFileChanged {
path: string
kind: ("add" | "update" | "delete" | "unknown")
}
/**
 * The result of the run was written to a file.
 */
export interface RaspArtifactResultWritten {
path: string
bytes: number
sha256?: string | undefined
}
/**
 * The agent needs a person.
 */
export interface RaspInteractionRequested {
interaction_id: string
kind: RaspInteractionKind
prompt: string
options: RaspOption[]
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
asked_at: RaspTimestamp
fields?: RaspField[] | undefined
default?: RaspJson | undefined
/**
 * How the agent asked; conversation: there was no question, the turn just ended.
 */
channel?: ("native" | "tool" | "envelope" | "conversation") | undefined
}
/**
 * One offered answer.
 */
export interface RaspOption {
label: string
value: RaspJson
description?: string | undefined
}
/**
 * One of several questions asked in one turn.
 */
export interface RaspField {
id: string
kind: RaspInteractionKind
prompt: string
options: RaspOption[]
default?: RaspJson | undefined
}
/**
 * A person's answer was accepted.
 */
export interface RaspInteractionReplyAccepted {
interaction_id: string
resolution_mode: "user_reply"
accepted_at: RaspTimestamp
response?: RaspJson | undefined
finish?: boolean | undefined
actor?: RaspActor | undefined
/**
 * For an approval: whether the client showed all of it before the decision; absent if the client did not report it.
 */
review?: ("seen" | "unread") | undefined
idempotency_key?: string | undefined
}
/**
 * The question timed out, and the policy decided.
 */
export interface RaspInteractionAutoDecideTimeout {
interaction_id: string
resolution_mode: "auto_decide_timeout"
policy: ("engine_judgement" | "use_default" | "finish" | "decline")
decided_at?: RaspTimestamp | undefined
response?: RaspJson | undefined
}
/**
 * A stored decision was sent to the engine.
 */
export interface RaspInteractionApprovalApplied {
interaction_id: string
decision: ("approve" | "approve_for_session" | "decline" | "cancel")
digest: string
applied_at: RaspTimestamp
actor?: RaspActor | undefined
}
/**
 * The parser read something unexpected.
 */
export interface RaspDiagnosticParserWarning {
code: string
message: string
event_type?: string | undefined
path?: string | undefined
/**
 * The number of lines, if one warning stands for several.
 */
lines?: number | undefined
/**
 * The first byte of the first line.
 */
first_byte?: number | undefined
/**
 * Codes of unusual bytes in these lines.
 */
flags?: string[] | undefined
/**
 * The version of the engine whose output has drifted, if it is known.
 */
engine_version?: string | undefined
}
/**
 * The engine reported something that does not end the turn.
 */
export interface RaspDiagnosticEngineWarning {
message: string
code?: string | undefined
}
/**
 * The engine reported an error.
 */
export interface RaspDiagnosticEngineError {
message: string
/**
 * true: the engine reports that the turn has ended
 */
terminal: boolean
code?: string | undefined
http_status?: number | undefined
retryable?: boolean | undefined
}
/**
 * The process ended well, but nothing shows success.
 */
export interface RaspDiagnosticCompletionUnknown {
reason_code: string
message: string
}
/**
 * A piece of stdout as text, without its end of line.
 */
export interface RaspRawStdout {
text: string
/**
 * number of the piece, if a line was too long for one event
 */
part?: number | undefined
}
/**
 * A piece of stderr as text, without its end of line.
 */
export interface RaspRawStderr {
text: string
part?: number | undefined
}

export const RASP_TYPES = [
  "lifecycle.run.created",
  "lifecycle.state.changed",
  "lifecycle.turn.started",
  "lifecycle.process.spawned",
  "lifecycle.process.ended",
  "lifecycle.session.bound",
  "lifecycle.session.confirmed",
  "lifecycle.cancel.requested",
  "lifecycle.engine.progress",
  "lifecycle.turn.silent",
  "lifecycle.turn.ended",
  "agent.message.delta",
  "agent.message.final",
  "agent.reasoning",
  "agent.plan",
  "agent.usage",
  "tool.call.started",
  "tool.call.updated",
  "tool.call.completed",
  "artifact.file.changed",
  "artifact.result.written",
  "interaction.requested",
  "interaction.reply.accepted",
  "interaction.auto_decide.timeout",
  "interaction.approval.applied",
  "diagnostic.parser.warning",
  "diagnostic.engine.warning",
  "diagnostic.engine.error",
  "diagnostic.completion.unknown",
  "raw.stdout",
  "raw.stderr"
] as const satisfies readonly (keyof RaspData)[];
