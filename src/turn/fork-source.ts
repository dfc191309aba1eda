// Returns the session that a run starts with a copy of, from its spec; null if there is none.
import type { RunSpec } from '../store/store.js';
import type { EngineSessionHandle } from '../run/session-handle.js';

// A session of an ended run that the new run continues.
export interface Continuation {
  readonly run_id: string;
  readonly handle: EngineSessionHandle;
}

export function forkSource({ engine, cwd, fork_from: fork }: RunSpec): Continuation | null {
  if (fork === undefined) return null;
  return {
    run_id: fork.run_id,
    handle: {
      engine,
      handle_type: 'session_id',
      handle_value: fork.session,
      cwd,
      home: fork.home,
      created_at_attempt: 1,
    },
  };
}
