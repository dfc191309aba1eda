// A process that we started could not be ended, so the promise that no process is left behind is broken.
import type { ChildEnd } from './child-end.js';

export class LeftBehindError extends Error {
  override readonly name = 'LeftBehindError';
  // Empty if an unknown process still holds the output open (no mark, and a different session).
  readonly pids: readonly number[];
  // How the child itself ended; null if there was none.
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
