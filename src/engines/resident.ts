// The port of an engine that stays: one process for several turns of a conversation, which may ask in the middle of
// one.
import type { Json, JsonObject } from '../kernel/json.js';
import type { StreamName } from '../rasp/event.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { Exit } from '../run/judge-completion.js';
import type { Permission } from './engine.js';
import type { NativeRequest } from './native-request.js';

export interface ResidentRules {
  // Where in the folder of its run its output is kept: one log for all turns.
  readonly logs: Readonly<Record<StreamName, string>>;
  // What it is sent. Throws for a decision that is none: nothing is ever allowed by mistake.
  readonly buildAnswer: (request: NativeRequest, response: Json) => JsonObject;
  // Whether the decision `cancel`, as an answer to it, ends the turn by itself.
  readonly stopsByAnswer: (request: NativeRequest) => boolean;
  // What the agent is told when the process that asked is gone.
  readonly describeAnswer: (question: JsonObject, response: Json) => string;
  // Whether a decision about an action may be used in another process, when the agent asks for the same again.
  readonly carriesOver: (action: JsonObject) => boolean;
  // What a decision is bound to.
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
  // Of processes that a host without a lease may still have for this run.
  readonly passesOver?: string;
  // Gives the start up.
  readonly signal: AbortSignal;
}

export interface Conversation {
  // The one to go on with; null: a new one.
  readonly session: string | null;
  // To go on with a copy of it, which has an id of its own.
  readonly copies?: boolean;
  readonly cwd: string;
  readonly permission: Permission;
  // Whether somebody is there to be asked.
  readonly mode: ExecutionMode;
  readonly model?: string | undefined;
}

export interface ResidentEnd {
  readonly exit: Exit;
  // What went wrong on our side: not everything it said may be in its log.
  readonly error: Error | null;
}

export interface Resident {
  readonly pid: number;
  // Tells a reused pid apart; '' where unknown.
  readonly startTime: string;
  // Where in its log it began: what is before that is another's.
  readonly from: number;
  readonly isAlive: boolean;
  // Begins a turn, in a conversation that is opened if it is not yet.
  converse(conversation: Conversation, prompt: string): Promise<void>;
  // What it says from this place of its log on, line by line with their ends; ends with the process.
  lines(from: number, signal: AbortSignal): AsyncIterable<Buffer>;
  // Whether it still waits for the answer.
  waitsFor(request: NativeRequest): boolean;
  answer(request: NativeRequest, result: JsonObject): void;
  refuse(request: NativeRequest, reason: string): void;
  // Refuses what stands in a line that was too long to be read.
  refuseLine(line: Buffer): void;
  // Resolves when it does not wait for the answer any more, though nobody has given it.
  forgets(request: NativeRequest, signal: AbortSignal): Promise<void>;
  // Tells the agent something in the middle of its turn.
  tell(text: string): Promise<void>;
  // Ends the turn that is on.
  interrupt(): Promise<void>;
  // Resolves when nothing of it is left.
  close(): Promise<ResidentEnd>;
  readonly ended: Promise<ResidentEnd>;
}
