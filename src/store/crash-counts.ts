// The part of the store that counts crashes: how often a host died while it was about to start a turn of a run, or ran
// it. A clean stop is not a crash, and neither is a lease that a living host has lost. The count of a run starts anew
// when one of its turns ends with a question.

export interface CrashCounts {
  // Stores that a queued run is about to be started here, before anything is prepared for it. Stores that record each
  // claim do nothing.
  markStarting(runId: string): Promise<void>;
  // This host stops cleanly: the runs that it was about to start have not crashed it.
  releaseStarts(): Promise<void>;
  // At the start of the only writer: counts a crash for each run that the writer before was about to start or was
  // running, once for each. Hosts that share a store count when they take a run from a dead host.
  countCrashes(): Promise<void>;
}
