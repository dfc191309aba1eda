// The key to an engine's stored conversation, bound to the engine, the working directory and the home it lives in.

export interface EngineSessionHandle {
  readonly engine: string;
  readonly handle_type: 'session_id';
  readonly handle_value: string;
  readonly cwd: string;
  readonly home: string | null;
  readonly created_at_attempt: number;
}
