// Whether the disk is slow, from how long the last commits took that SQLite synced. A commit may also take long because
// another process had the core, so the shortest of several decides.
const KEPT = 8;
// Waiting for a faster disk costs less than the two turns of the event loop until another thread has synced, in which
// no other transaction can begin.
const SLOW_MS = 4;
// So many commits of another thread are followed by one that is measured again.
const UNMEASURED = 100;

export class CommitTimes {
  readonly #times: number[] = [];
  #unmeasured = 0;

  // A commit that SQLite synced.
  add(ms: number): void {
    this.#times.push(ms);
    if (this.#times.length > KEPT) this.#times.shift();
    this.#unmeasured = 0;
  }

  // Whether another thread should sync the next commit. False once in a while, so that the disk is measured again.
  get areSlow(): boolean {
    if (this.#times.length < KEPT || Math.min(...this.#times) < SLOW_MS) return false;
    this.#unmeasured += 1;
    return this.#unmeasured <= UNMEASURED;
  }
}
