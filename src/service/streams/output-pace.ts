// Lets other work run while streams have much to send: a stream that has read or sent something waits for a later
// event-loop tick if all streams together have read and sent enough in this one. Otherwise a reader that keeps up, or
// many readers at once, would delay every other request until they have everything.
const TICK_BYTES = 1024 * 1024;
// A short frame costs the queries and the system call behind it.
const LEAST_BYTES = 8 * 1024;

interface Waiter {
  readonly bytes: number;
  readonly resume: () => void;
}

export class OutputPace {
  // In this tick.
  #sent = 0;
  #isTickAwaited = false;
  // The stream that has waited longest comes first.
  readonly #waiting: Waiter[] = [];

  // Call it after each read of the store and each write. Returns nothing if the stream may continue, else a promise to
  // wait for.
  sent(length: number): Promise<void> | undefined {
    const bytes = Math.max(length, LEAST_BYTES);
    this.#sent += bytes;
    this.#awaitTick();
    if (this.#sent < TICK_BYTES && this.#waiting.length === 0) return undefined;
    return new Promise((resume) => void this.#waiting.push({ bytes, resume }));
  }

  #awaitTick(): void {
    if (this.#isTickAwaited) return;
    this.#isTickAwaited = true;
    setImmediate(() => this.#beginTick());
  }

  // The next page of a stream is expected to be as large as its last one.
  #beginTick(): void {
    this.#isTickAwaited = false;
    this.#sent = 0;
    let bytes = 0;
    let resumed = 0;
    for (; resumed < this.#waiting.length && bytes < TICK_BYTES; resumed += 1)
      bytes += this.#waiting[resumed]?.bytes ?? 0;
    for (const { resume } of this.#waiting.splice(0, resumed)) resume();
    if (this.#waiting.length > 0) this.#awaitTick();
  }
}
