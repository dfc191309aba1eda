// The session that a run begins with a copy of, as its own run has it stored; null: it begins with nothing.
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunSpec } from '../store/store.js';

export function forkSource({ engine, cwd, fork_from: fork }: RunSpec): EngineSessionHandle | null {
  if (fork === undefined) return null;
  return { engine, handle_type: 'session_id', handle_value: fork.session, cwd, home: fork.home, created_at_attempt: 1 };
}
