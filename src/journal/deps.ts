// What the orchestrator is given: everything of the outside, as arguments.
import type { Cluster } from '../dispatch/cluster.js';
import type { Engine } from '../engines/engine.js';
import type { Resident, ResidentStart } from '../engines/resident.js';
import type { Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import type { Timers } from '../process/timers.js';
import type { TurnDefaults } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunState } from '../run/statechart.js';
import type { NewRun, RunRecord, Store } from '../store/store.js';

export interface OrchestratorDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly timers: Timers;
  readonly dataDir: string;
  readonly host: EngineHost;
  // New runs are refused while so many are queued; an answer never is.
  readonly queueLimit: number;
  // Engines that cannot resume may keep their process while a run waits (sessions.sticky).
  readonly sticky?: boolean;
  // Builds the run that repeats an interrupted one (recovery.running); null: it must not be repeated.
  readonly retryInterrupted?: (run: RunRecord, handle: EngineSessionHandle | undefined) => Promise<NewRun | null>;
  // The limits of a turn for runs that do not set their own.
  readonly turnDefaults?: TurnDefaults;
  // Other hosts share the store.
  readonly cluster?: Cluster;
  // Queued runs are started again after a crash: each start is stored before anything is prepared for it. Other starts
  // cost no write.
  readonly marksStarts?: boolean;
  // Who is told of changes. A notification is stored with its change; sending it is somebody else's.
  readonly hooks?: readonly Hook[];
  // Where people open a run, for notifications; null: not known.
  readonly runUrl?: (runId: string) => string | null;
}

export type HookEvent = RunState | 'silent';

export interface Hook {
  readonly name: string;
  // The states whose beginning it is told of, and turns that print nothing.
  readonly events: readonly HookEvent[];
}

// What a turn needs of its home: the question tool, and the session it continues.
export interface TurnNeeds {
  readonly ask: readonly string[] | null;
  readonly resumed: EngineSessionHandle | null;
}

// Whether an engine can continue a conversation in another process.
export interface ResumeKnowledge {
  // The program itself shows that it can. A probe that failed, crashed or hung does not count.
  readonly resumes: boolean;
  // Why not, for people.
  readonly problem: string | null;
}

type Environment = Readonly<Record<string, string>>;

// How engines are reached on this machine.
export interface EngineHost {
  // What starts an engine, or null if it is not installed.
  findProgram(engine: Engine): Promise<readonly string[] | null>;
  // Why nothing starts it, where there is more to say than how to install it.
  explainMissing?(engine: Engine): string | undefined;
  // The version of what starts it, where that can be told without starting it.
  versionOf?(engine: Engine, program: readonly string[]): string | undefined;
  // Resolves when an engine may be started; what it answers is called when the engine has ended, or was not started.
  admit?(engine: Engine): Promise<() => void>;
  // Makes the home of the run ready for a turn, and answers the complete environment for the engine's process.
  environment(engine: Engine, run: RunRecord, turn: TurnNeeds): Environment | Promise<Environment>;
  // Starts one that stays, and greets it. Throws a TurnRefusedError where that is known not to work.
  startResident?(engine: Engine, start: ResidentStart): Promise<Resident>;
  // Is the session really there? Looked up in its files; nothing is started.
  hasSession(handle: EngineSessionHandle): Promise<boolean>;
  // Copies what is stored of a session into another home, as far as it is whole. False: it is not there.
  copySession?(handle: EngineSessionHandle, home: string): Promise<boolean>;
  // What starts the question tool; without it agents ask in their last message.
  readonly askTool?: readonly string[];
  // What is known of the engine's ability to resume; null: nothing yet. Never waits and starts nothing.
  knownResume?(engine: Engine): ResumeKnowledge | null;
  // Probes the engine once per program, within a bounded time; null: the program is missing.
  probeResume?(engine: Engine): Promise<ResumeKnowledge | null>;
  // Why a run of the engine could only fail, by what is known; null: nothing speaks against it. Never waits and starts
  // nothing.
  explainUnusable?(
    engine: Engine,
    model: string | undefined,
  ): { readonly code: 'ENGINE_NOT_INSTALLED' | 'ENGINE_LOGGED_OUT'; readonly message: string } | null;
  // What the engine made of the login in a turn.
  noteLogin?(engine: Engine, model: string | undefined, isAccepted: boolean): void;
  // An id for a new session, for engines that let the caller choose.
  newSessionId(): string;
}
