// The dependencies of the orchestrator: everything outside of it is an argument.
import type { CreateDispatch } from '../dispatch/dispatch.js';
import type { Permission } from '../engines/engine.js';
import type { HostPorts } from '../ownership/ownership.js';
import type { Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import type { EngineRuntime } from '../machine/engine-runtime.js';
import type { Timers } from '../process/timers.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { HookEvent } from '../run/hook-event.js';
import type { TurnDefaults } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { NewRun, RunRecord, Store } from '../store/store.js';

export interface OrchestratorDeps extends HostPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly timers: Timers;
  readonly dataDir: string;
  readonly runtime: EngineRuntime;
  // While this many runs are queued, new runs are refused. Answers are always accepted. A function, because the
  // settings may change.
  readonly queueLimit: () => number;
  // A run whose engine cannot resume may wait in its process (see src/run/waiting).
  readonly mayNeedProcess?: boolean;
  // Builds the run that repeats an interrupted one (recovery.running); null: it must not be repeated.
  readonly retryInterrupted?: (run: RunRecord, confirmed: EngineSessionHandle | null) => Promise<NewRun | null>;
  // The values of new runs that do not set their own. A function, because the settings may change.
  readonly runDefaults?: () => RunDefaults;
  // Absent: turns are dispatched within this process.
  readonly createDispatch?: CreateDispatch;
  // The hooks that are notified of changes. A notification is stored with its change; src/hooks sends it.
  readonly hooks?: readonly Hook[];
  // The URL at which people open a run, for notifications; null: unknown.
  readonly runUrl?: (runId: string) => string | null;
}

export interface RunDefaults {
  readonly mode: ExecutionMode | null;
  readonly permission: Permission;
  // By engine, because the name of a model belongs to an engine.
  readonly model: Readonly<Record<string, string>>;
  // The limits of a turn.
  readonly limits: TurnDefaults;
}

export interface Hook {
  readonly name: string;
  // The states whose start it is notified of, and turns that print nothing.
  readonly events: readonly HookEvent[];
}
