// The port through which turns and commands reach engines on this machine. create-engine-runtime.ts implements it;
// tests and benchmarks pass objects of their own.
import type { Engine } from '../engines/engine.js';
import type { Resident, ResidentStart } from '../engines/resident.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RequestError } from '../run/request-error.js';
import type { RunError } from '../run/run-error.js';
import type { RunRecord } from '../store/store.js';

// What a turn needs in its home: the command of the question tool, and the session that the turn continues.
export interface TurnNeeds {
  readonly ask: readonly string[] | null;
  readonly resumed: EngineSessionHandle | null;
}

// Whether an engine can continue a conversation in another process.
export interface ResumeKnowledge {
  // True only if the program itself shows it. A probe that failed, crashed or hung does not prove anything.
  readonly resumes: boolean;
  // Why it cannot resume, for people.
  readonly problem: string | null;
}

// The instructions of a workspace, or why they cannot be passed on.
export type Instructions = { readonly text: string } | { readonly problem: string };

type Environment = Readonly<Record<string, string>>;

export interface EngineRuntime {
  // Resolves to the command that starts an engine, or null if the engine is not installed.
  findProgram(engine: Engine): Promise<readonly string[] | null>;
  // Explains why no program was found, if the reason is not simply that the engine is not installed.
  explainMissing?(engine: Engine): RunError | undefined;
  // Returns the version of the program if it can be read without starting the program.
  versionOf?(engine: Engine, program: readonly string[]): string | undefined;
  // Resolves when the engine may start. Call the returned function when the engine has exited or was not started.
  admit?(engine: Engine): Promise<() => void>;
  // Prepares the home of the run for a turn, and returns the complete environment of the engine's process.
  environment(engine: Engine, run: RunRecord, turn: TurnNeeds): Environment | Promise<Environment>;
  // Reads the instructions of the workspace that the engine does not read itself; null: there are none.
  readInstructions?(engine: Engine, run: RunRecord): Promise<Instructions | null>;
  // Starts a resident engine and initializes the connection. Throws a TurnRefusedError for known obstacles.
  startResident?(engine: Engine, start: ResidentStart): Promise<Resident>;
  // Whether the files of the session exist. Starts no process.
  hasSession(handle: EngineSessionHandle): Promise<boolean>;
  // Copies the complete lines of a stored session into another home. False: the session does not exist.
  copySession?(handle: EngineSessionHandle, home: string): Promise<boolean>;
  // The command of the question tool; without it agents ask in their last message.
  readonly askTool?: readonly string[];
  // Returns the known facts about the engine's ability to resume, or null. Never waits and starts no process.
  knownResume?(engine: Engine): ResumeKnowledge | null;
  // Probes each program once, within a bounded time. Null: the program is missing.
  probeResume?(engine: Engine): Promise<ResumeKnowledge | null>;
  // Explains why a run of the engine would certainly fail; null: no known obstacle. Never waits and starts no process.
  explainUnusable?(engine: Engine, model: string | undefined): RequestError | null;
  // Records whether the engine accepted the login in a turn.
  noteLogin?(engine: Engine, model: string | undefined, isAccepted: boolean): void;
  // Creates an id for a new session, for engines that let the caller choose one.
  newSessionId(): string;
}
