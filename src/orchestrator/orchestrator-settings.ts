// How an orchestrator works on its runs, and what its end reports.
import type { RecoverySettings } from '../recovery/recover.js';
import type { ResidentLimits } from '../turn/residents.js';

// Work that a stop cut off: turns that were ended, and runs that never began.
export interface CloseOptions {
  // How long running turns may take to end by themselves.
  readonly graceMs?: number;
  // Ends that wait.
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
  // How long, and how many, processes of runs that wait are kept.
  readonly residents?: ResidentLimits;
  // False: for whoever only changes something and goes. Nothing is decided or started that it would then leave alone.
  readonly plays?: boolean;
  // A turn that ended in a way it should not have: a defect of ours, or the store is gone.
  readonly onFailure: (runId: string, error: unknown) => void;
}
