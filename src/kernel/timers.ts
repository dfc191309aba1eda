// Waiting is an argument: code that sets a deadline takes Timers, so a test can move time by hand.

export interface Timers {
  // Returns the function that cancels the timer.
  set(ms: number, fire: () => void): () => void;
}
