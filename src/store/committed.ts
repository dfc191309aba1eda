// What a store tells its listeners after each commit.
import type { RunState } from '../run/statechart.js';
import type { JournalFlush } from './store.js';

// What a commit changed, for those who watch.
export interface Committed {
  readonly run_id: string;
  readonly journal?: JournalFlush | undefined;
  // Set where the state changed, or the run is new.
  readonly status?: RunState | undefined;
  // A question that waits from now on, and one that does not wait any more.
  readonly asked?: string | undefined;
  // When the policy decides the question that was asked; null: never. Undefined where that is not known.
  readonly decides_at?: number | null | undefined;
  readonly resolved?: string | undefined;
  // The run is gone with all its rows.
  readonly deleted?: true | undefined;
  // Made by this very store, or by another one on the same database; of the latter the journal is not told.
  readonly origin: 'here' | 'elsewhere';
  // How long it took to make it durable; 0 if that was elsewhere.
  readonly ms: number;
}

export type CommitListener = (commit: Committed) => void;
