// A run whose host crashes while the run starts or runs may itself be the cause: after the second crash it is not
// started again.
import { runError, type RunError } from '../run/run-error.js';
import type { RunRecord } from '../store/store.js';

const MOST_CRASHES = 2;
export function hasCrashedTwice({ crashes }: Pick<RunRecord, 'crashes'>): boolean {
  return crashes >= MOST_CRASHES;
}

// How a run was interrupted: a message of ORCHESTRATOR_RESTART_INTERRUPTED.
export type Interruption = 'running' | 'queued' | 'logs_elsewhere' | 'logs_unreadable';

// The error of a run whose host stopped or crashed.
export function explainInterruption(
  { crashes }: Pick<RunRecord, 'crashes'>,
  interruption: Interruption = 'running',
): RunError {
  if (!hasCrashedTwice({ crashes })) return runError(`ORCHESTRATOR_RESTART_INTERRUPTED.${interruption}`);
  return {
    ...runError('ORCHESTRATOR_RESTART_INTERRUPTED.crashed', { crashes }),
    details: { reason: 'HOST_CRASHED_TWICE', crashes },
  };
}
