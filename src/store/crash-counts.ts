// The part of the store that counts crashes: how often a host died while it was about to start a turn of a run, or ran
// it. A clean stop is not a crash, and neither is a lease that a living host has lost. The count of a run starts anew
// when one of its turns ends with a question.

export interface CrashCounts {
  // Records that a queued run is about to be started here, before anything is prepared for it. Stores that record each
  // claim do nothing.
  markStarting(runId: string): Promise<void>;
  // This host stops cleanly: the runs that it was about to start are not counted as crashed.
  releaseStarts(): Promise<void>;
  // At the start of the only writer: counts one crash for each run that the previous writer was about to start or was
  // running. Hosts that share a store count when they take a run from a dead host.
  countCrashes(): Promise<void>;
}
