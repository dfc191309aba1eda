// Watches a child for silence: reports it, and reports when a limit is reached. A different limit applies while a tool
// call is known to be running. Time in which we hold back reading (a slow log or handler) does not count, because then
// the child is not silent.
import { setImmediate } from 'node:timers/promises';
import type { Timers } from './timers.js';

type SilenceReason = 'idle_timeout' | 'tool_timeout';

export interface SilenceRules {
  // The limits without output: while no tool call is known to be running, and while one is.
  readonly idleMs: number;
  readonly toolMs: number;
  // When to report the silence, once until the next output; null: never.
  readonly noticeMs: number | null;
  readonly isToolRunning: () => boolean;
  readonly onLimit: (reason: SilenceReason) => void;
  readonly onNotice: () => void;
}

export class IdleWatch {
  readonly #timers: Timers;
  // How many streams are held back now, and how many chunks were read in total.
  #held = 0;
  #chunks = 0;
  #rules: SilenceRules | null = null;
  #stops: (() => void)[] = [];

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  start(rules: SilenceRules): void {
    this.#rules = rules;
    this.#arm();
  }

  stop(): void {
    this.#rules = null;
    this.#disarm();
  }

  // A chunk was read. Its stream is not read again before release().
  hold(): void {
    this.#held += 1;
    this.#chunks += 1;
    this.#disarm();
  }

  release(): void {
    this.#held -= 1;
    if (this.#held === 0) this.#arm();
  }

  // Resolves to true if no stream is held back and no chunk was waiting to be read: a timer that is late because we
  // were busy fires before the event loop polls the pipes.
  async isQuiet(): Promise<boolean> {
    const before = this.#chunks;
    // Twice: the first may run before the loop polls again; between the two lies a complete round.
    await setImmediate();
    await setImmediate();
    return this.#held === 0 && this.#chunks === before;
  }

  #disarm(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #arm(): void {
    this.#disarm();
    const rules = this.#rules;
    if (rules === null) return;
    const reason = rules.isToolRunning() ? 'tool_timeout' : 'idle_timeout';
    const limitMs = reason === 'tool_timeout' ? rules.toolMs : rules.idleMs;
    this.#after(limitMs, rules, () => rules.onLimit(reason));
    // A turn that is about to be ended is not reported as silent first.
    if (rules.noticeMs !== null && rules.noticeMs < limitMs) this.#after(rules.noticeMs, rules, rules.onNotice);
  }

  #after(ms: number, rules: SilenceRules, act: () => void): void {
    this.#stops.push(
      this.#timers.set(ms, () => {
        void this.isQuiet().then((isQuiet) => isQuiet && this.#rules === rules && act());
      }),
    );
  }
}
