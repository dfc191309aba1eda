// Watches a child that prints nothing: reports it, and says when a limit is reached. While a tool call is known to be
// running, another limit applies than otherwise. The time in which WE hold back reading (the log or the handler is
// slow) does not count: then it is not the child that is silent.
import { setImmediate } from 'node:timers/promises';
import type { Timers } from './timers.js';

export type SilenceReason = 'idle_timeout' | 'tool_timeout';

export interface SilenceRules {
  // Without output while no tool call is known to be running, and while one is.
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
  // How many streams are held back now, and how many chunks were ever taken.
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

  // A chunk was read; until it is released its stream is not read.
  hold(): void {
    this.#held += 1;
    this.#chunks += 1;
    this.#disarm();
  }

  release(): void {
    this.#held -= 1;
    if (this.#held === 0) this.#arm();
  }

  // True if nothing is held, and nothing had been waiting to be read: a timer that is late because we were busy fires
  // before the event loop looks at the pipes.
  async isQuiet(): Promise<boolean> {
    const before = this.#chunks;
    // Twice: the first may come before the loop looks again, between two of them lies a whole round.
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
    // A turn that is ended anyway is not reported as silent first.
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
