// The key to an engine's stored conversation, bound to the engine, the working directory and the home it lives in.
import type { RaspSessionHandle } from '../contract/rasp-data.js';

export interface EngineSessionHandle {
  readonly engine: string;
  // Only that process can continue a session of the type `process` (see src/run/waiting).
  readonly handle_type: 'session_id' | 'process';
  readonly handle_value: string;
  readonly cwd: string;
  readonly home: string | null;
  readonly created_at_attempt: number;
}

// The handle as events record it; the other members are those of the run.
export function describeSession(handle: EngineSessionHandle): RaspSessionHandle {
  const { handle_type, handle_value: session_id, created_at_attempt } = handle;
  return { session_id, handle_type, created_at_attempt };
}
