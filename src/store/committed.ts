// What listeners of a store get after each commit.
import type { RunState } from '../run/statechart.js';
import type { JournalFlush } from './store.js';

// What a commit changed.
export interface Committed {
  readonly run_id: string;
  // The bytes are valid until the listener returns: copy what you keep.
  readonly journal?: JournalFlush | undefined;
  // Set if the state changed or the run is new.
  readonly status?: RunState | undefined;
  // The question that is open from now on, and the one that no longer is.
  readonly asked?: string | undefined;
  // When the policy decides the open question; null: never. Undefined: unknown.
  readonly decides_at?: number | null | undefined;
  readonly resolved?: string | undefined;
  // The run was deleted with all its rows.
  readonly deleted?: true | undefined;
  // Whether this store made the commit, or another one on the same database; the latter comes without its lines.
  readonly origin: 'here' | 'elsewhere';
  // How long the commit took to become durable; 0 if another process made it.
  readonly ms: number;
}

export type CommitListener = (commit: Committed) => void;
