// Runs and questions as lists show them. Each is bounded in size, so neither memory nor time depends on what callers
// and engines wrote. `truncated` names the shortened parts; a question that is shortened must be read whole before it
// is answered.
import type { InteractionRecord, PendingFilter, RunFilter, RunRecord } from './store.js';

/** A part of a run that lists show in a shortened form. */
export type ShortenedPart = 'prompt' | 'labels' | 'error' | 'result' | 'question' | 'answer';

// A run in short form, without its output schema.
export interface RunSummary extends Omit<RunRecord, 'truncated'> {
  readonly truncated: readonly ShortenedPart[];
}

export interface InteractionSummary extends Omit<InteractionRecord, 'truncated'> {
  readonly truncated: readonly ShortenedPart[];
}

export interface SummaryReader {
  // Newest first, or a DamagedDataError if one cannot be read.
  listRuns(filter: RunFilter): Promise<RunSummary[]>;
  loadRun(runId: string): Promise<RunSummary | null>;
  // By their ids. Damaged and unknown runs are left out.
  loadRuns(runIds: readonly string[]): Promise<ReadonlyMap<string, RunSummary>>;
  // Oldest question first. Damaged questions are left out; verify reports them.
  listPending(filter: PendingFilter): Promise<InteractionSummary[]>;
  loadInteraction(interactionId: string): Promise<InteractionSummary | null>;
  // The question that the run waits for.
  loadPendingInteraction(runId: string): Promise<InteractionSummary | null>;
}
