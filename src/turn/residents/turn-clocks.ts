// The deadlines of a turn in a resident process: how long the turn may take, and how long it may print nothing.
import type { TurnParser } from '../../engines/turn-parser.js';
import type { EndReason } from '../../process/child.js';
import { IdleWatch } from '../../process/idle-watch.js';
import { reportSilence } from '../report-silence.js';
import type { TurnContext } from '../turn-context.js';

export class TurnClocks {
  readonly silence: IdleWatch;
  readonly #context: TurnContext;
  #cancelTimeout = () => {};

  constructor(context: TurnContext) {
    this.#context = context;
    this.silence = new IdleWatch(context.deps.timers);
  }

  start(parser: TurnParser, end: (reason: EndReason) => void): void {
    const { deps, options } = this.#context;
    this.silence.start({
      idleMs: options.idle_timeout_sec * 1000,
      toolMs: options.tool_timeout_sec * 1000,
      noticeMs: options.silence_notice_sec * 1000,
      isToolRunning: () => parser.isToolRunning,
      onLimit: end,
      onNotice: () => reportSilence(this.#context, parser.isToolRunning),
    });
    if (options.turn_timeout_sec === null) return;
    this.#cancelTimeout = deps.timers.set(options.turn_timeout_sec * 1000, () => end('turn_timeout'));
  }

  stop(): void {
    this.silence.stop();
    this.#cancelTimeout();
  }
}
