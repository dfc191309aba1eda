// The port of a resident engine: one process that serves several turns of a conversation and may send requests during a
// turn.
// Fits any engine that speaks JSON-RPC over stdin and stdout: `converse` opens or resumes the session and sends the
// prompt, `lines` delivers the output, requests of the engine are answered by message, and everything that is
// particular to a protocol is in its Resident, its ResidentRules and its reader (createReader).
import type { ReceivedLine } from '../jsonrpc/received-line.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { StreamName } from '../rasp/event.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { Exit } from '../run/judge-completion.js';
import type { Permission } from './engine.js';
import type { NativeRequest } from './native-request.js';

export interface ResidentRules {
  // The logs of the process, relative to the folder of the run: one log for all turns.
  readonly logs: Readonly<Record<StreamName, string>>;
  // Builds the result that is sent to the engine. Throws for a response that is not a valid decision, so nothing is
  // ever allowed by mistake.
  readonly buildAnswer: (request: NativeRequest, response: Json) => JsonObject;
  // Whether the decision `cancel`, sent as the answer to this request, makes the engine end its turn.
  readonly stopsByAnswer: (request: NativeRequest) => boolean;
  // The prompt that gives an answer to a new process, when the process that asked has exited.
  readonly describeAnswer: (question: JsonObject, response: Json) => string;
  // Whether a decision about an action may be used in another process, when the agent asks for the same again.
  readonly carriesOver: (action: JsonObject) => boolean;
  // Identifies what a decision is about.
  readonly digest: (action: JsonObject, permission: Permission) => string;
}

export interface ResidentStart {
  readonly program: readonly string[];
  // The folder of the run.
  readonly folder: string;
  readonly home: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly mark: string;
  // The prefix of the marks of processes that a host which lost its lease may still run for this run. They are ended.
  readonly passesOver?: string;
  // Cancels the start.
  readonly signal: AbortSignal;
}

export interface Conversation {
  // The session to continue; null: a new one.
  readonly session: string | null;
  // Continue with a copy of the session, which gets its own id.
  readonly copies?: boolean;
  readonly cwd: string;
  readonly permission: Permission;
  // Whether a person can be asked.
  readonly mode: ExecutionMode;
  readonly model?: string | undefined;
}

interface ResidentEnd {
  readonly exit: Exit;
  // An error on our side: the log may lack output.
  readonly error: Error | null;
}

export interface Resident {
  readonly pid: number;
  // Distinguishes the process from a later one with the same pid; '' where unknown.
  readonly startTime: string;
  // The offset in the log where the output of this process begins.
  readonly from: number;
  readonly isAlive: boolean;
  // Sends a prompt, in a session that is opened first if none is open. Resolves when the engine has accepted the
  // prompt, not when its turn has ended.
  converse(conversation: Conversation, prompt: string): Promise<void>;
  // The lines from this offset of the log on, each after it was logged; ends with the process. The engine's output is
  // not read further while many lines wait for this reader, so the caller must not wait for the engine in between.
  lines(from: number, signal?: AbortSignal): AsyncIterable<ReceivedLine>;
  // Whether the engine waits for the answer to this request.
  waitsFor(request: NativeRequest): boolean;
  answer(request: NativeRequest, result: JsonObject): void;
  refuse(request: NativeRequest, reason: string): void;
  // Resolves when the engine no longer waits for the answer, or when the signal aborts.
  forgets(request: NativeRequest, signal: AbortSignal): Promise<void>;
  // Adds a message to the running turn. Rejects if the engine cannot accept one.
  tell(text: string): Promise<void>;
  // Stops the running turn.
  interrupt(): Promise<void>;
  // Resolves when the process and everything it started have exited.
  close(): Promise<ResidentEnd>;
  readonly ended: Promise<ResidentEnd>;
}
