// The port of an engine that asks Parley before each of its tool calls, over HTTP on loopback. A call that needs a
// person is deferred: the engine's process exits, and the next one asks about the same call again.
import type { Json, JsonObject } from '../kernel/json.js';
import type { Question } from '../run/interaction.js';
import type { Permission } from './engine.js';

export interface ToolCall {
  readonly id: string;
  // The prompt that it works on; a process may continue with another one.
  readonly prompt: string | null;
  readonly tool: string;
  readonly input: JsonObject;
  readonly cwd: string;
  // A subagent's call cannot be deferred.
  readonly isSubagent: boolean;
}

export type Verdict =
  // The engine's own checks decide.
  | { readonly type: 'pass' }
  // With the note of the person who allowed it.
  | { readonly type: 'allow'; readonly note?: string }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'defer' };

export interface GateRules {
  // Reads a request of the engine; null: it is about no tool call.
  readonly readCall: (body: Json | undefined) => ToolCall | null;
  // Whether the call asks a person by the question tool.
  readonly isQuestion: (call: ToolCall) => boolean;
  // Whether a person has to allow the call. Wrong answers are safe: the engine's own checks deny what it would ask
  // about.
  readonly needsPerson: (call: ToolCall, permission: Permission) => boolean;
  // The approval of a call, with all that will be done and nothing that changes when it is asked again; null: a person
  // could not judge it.
  readonly describe: (call: Pick<ToolCall, 'tool' | 'input' | 'cwd'>) => Question | null;
  readonly buildReply: (verdict: Verdict) => JsonObject;
}
