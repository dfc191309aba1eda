// Waiting is an argument: whoever sets a deadline is given Timers, so a test moves time by hand.

export interface Timers {
  // Answers how to cancel it.
  set(ms: number, fire: () => void): () => void;
}
