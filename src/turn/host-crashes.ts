// A run whose host crashes while it is about to start or runs may itself be the cause: after the second crash it is not
// started again.
import type { RunError } from '../run/judge-completion.js';
import type { RunRecord } from '../store/store.js';

const MOST_CRASHES = 2;
export const INTERRUPTED: RunError = {
  code: 'ORCHESTRATOR_RESTART_INTERRUPTED',
  message:
    'Parley stopped while this run was running. Repeat it with parley retry; the setting recovery.running="retry" ' +
    'repeats interrupted runs once by itself.',
};
export const INTERRUPTED_QUEUED =
  'Parley stopped while this run was queued. Start it with parley retry; the setting recovery.queued="requeue" ' +
  'keeps queued runs.';

export function hasCrashedTwice({ crashes }: Pick<RunRecord, 'crashes'>): boolean {
  return crashes >= MOST_CRASHES;
}

// Why a run ends whose host is gone. `message` says more about how that was found.
export function explainInterruption(run: Pick<RunRecord, 'crashes'>, message = INTERRUPTED.message): RunError {
  if (!hasCrashedTwice(run)) return { ...INTERRUPTED, message };
  const twice =
    `Parley crashed ${run.crashes} times while it was about to start this turn or ran it, so the run ` +
    'is not started again. parley.log tells why; parley retry starts it anew.';
  return {
    code: INTERRUPTED.code,
    message: `${message} ${twice}`,
    details: { reason: 'HOST_CRASHED_TWICE', crashes: run.crashes },
  };
}
