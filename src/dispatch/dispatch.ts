// The dispatch port: starts queued runs and decides expired questions. Everything it works on comes from the store.
import type { InteractionRecord, RunRecord } from '../store/store.js';

export interface DispatchHandlers {
  // Runs one turn. Resolves when the turn has ended, successfully or not. Rejects if its start or its end could not be
  // stored: the dispatch then waits before it tries the run again.
  startTurn(run: RunRecord): Promise<void>;
  // Decides an expired question. Resolves to false if the question was not decided.
  decide(interaction: InteractionRecord): Promise<boolean>;
  // Reports an unexpected error: the store is unavailable, or there is a bug in Parley.
  onFailure(error: unknown): void;
}

export interface Dispatch {
  // Call it when a run was queued, or a question was asked or answered.
  wake(): void;
  // Changes how many turns may run at the same time. Running turns continue; call wake() to fill free slots.
  setSlots(slots: number): void;
  // Resolves when the passes that wake() requested have finished.
  idle(): Promise<void>;
  // Starts no further turns, and resolves when all started turns have ended.
  close(): Promise<void>;
}

export type CreateDispatch = (handlers: DispatchHandlers, slots: number) => Dispatch;
