// The port: who works NEXT. It only consumes what the store holds: queued runs, and questions whose time will be over.
import type { InteractionRecord, RunRecord } from '../store/store.js';

export interface DispatchHandlers {
  // Plays one turn; resolves when it is over, however it ended. Rejects if it could not even be stored: then the run is
  // left alone for a while.
  startTurn(run: RunRecord): Promise<void>;
  // Decides a question whose time is over; false if it is not there any more.
  decide(interaction: InteractionRecord): Promise<boolean>;
  // Something that should not happen: the store is gone, or a defect of ours.
  onFailure(error: unknown): void;
}

export interface Dispatch {
  // Something has changed in the store: a run was queued, or a question was asked or answered.
  wake(): void;
  // Resolves when everything that was woken for has been looked at.
  idle(): Promise<void>;
  // Starts nothing more, and resolves when nothing it started is under way.
  close(): Promise<void>;
}
