// Something that was started could not be ended: the promise that nothing is left behind cannot be kept.
import type { ChildEnd } from './child-end.js';

export class LeftBehindError extends Error {
  override readonly name = 'LeftBehindError';
  // Empty when somebody still holds the output open who could not be found (no mark, a session of its own).
  readonly pids: readonly number[];
  // What is known about the child itself all the same; null where there was none.
  readonly end: ChildEnd | null;

  constructor(pids: readonly number[], end: ChildEnd | null) {
    super(
      pids.length > 0
        ? `could not end process ${pids.join(', ')}, not even with SIGKILL`
        : 'a process that could not be found still holds the output of an ended child open',
    );
    this.pids = pids;
    this.end = end;
  }
}
