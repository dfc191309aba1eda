// The key to an engine's stored conversation, bound to the engine, the working directory and the home it lives in.

export interface EngineSessionHandle {
  readonly engine: string;
  // A session in a process can be continued by that process alone; only where sessions.sticky is on.
  readonly handle_type: 'session_id' | 'process';
  readonly handle_value: string;
  readonly cwd: string;
  readonly home: string | null;
  readonly created_at_attempt: number;
}
