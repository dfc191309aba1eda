// How an orchestrator works on its runs, and what close() reports.
import type { OnFailure } from '../kernel/log.js';
import type { RecoverySettings } from '../recovery/recover.js';
import type { ResidentLimits } from '../turn/residents/residents.js';

// How close() treats running turns.
export interface CloseOptions {
  // How long running turns may take to end by themselves.
  readonly graceMs?: number;
  // Ends that grace period early.
  readonly hurry?: Promise<void>;
  // Called with the number of running turns before the wait.
  readonly onDrain?: (turns: number) => void;
}

export type Interrupted = { readonly turns: number; readonly queued: number };

export const RESIDENT_LIMITS: ResidentLimits = { parkAfterMs: 300_000, max: 8 };

export interface OrchestratorSettings {
  // How many turns may run at once.
  readonly slots: number;
  readonly recovery: RecoverySettings;
  // How many processes of waiting runs are kept, and for how long.
  readonly residents?: ResidentLimits;
  // False for a caller that only makes a change and exits: it decides no question and starts no turn that it would then
  // abandon.
  readonly runsTurns?: boolean;
  // True for a server: it serves while interrupted turns are ended, which may take long. Without it, open() resolves
  // when they are ended.
  readonly recoversBeside?: boolean;
  // Reports a turn that ended unexpectedly: a bug in Parley, or the store is unavailable.
  readonly onFailure: OnFailure;
}
