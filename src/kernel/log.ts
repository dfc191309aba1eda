// The log port: records failures that no caller receives, for the operator. Implementations never throw.

interface LogContext {
  // The run that the failure concerns.
  readonly runId?: string;
  // What failed, in a few words.
  readonly message?: string;
}

export interface Log {
  error(error: unknown, context?: LogContext): void;
}

// Reports a failure of background work. The run id is empty if the failure concerns no run.
export type OnFailure = (runId: string, error: unknown) => void;

// Adapts the port to this callback.
export function toFailureCallback(log: Log): OnFailure {
  return (runId, error) => log.error(error, runId === '' ? {} : { runId });
}
