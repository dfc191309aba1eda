// Shows the progress of a check as one line on stderr, on a terminal only. A quick check shows nothing.
import type { VerifyProgress } from '../../audit/verify-run.js';
import { formatSize } from '../../terminal/format-time.js';
import { Screen } from '../../terminal/screen.js';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';

const FIRST_MS = 500;
const EACH_MS = 200;

export class ProgressLine {
  readonly #io: Pick<Io, 'clock'>;
  readonly #screen: Screen;
  #next: number;

  constructor(io: Pick<Io, 'stderr' | 'terminal' | 'clock'>) {
    this.#io = io;
    this.#screen = new Screen((text) => void io.stderr.write(text), { tty: io.terminal.stderr });
    this.#next = io.clock.now() + FIRST_MS;
  }

  show(progress: VerifyProgress): void {
    const now = this.#io.clock.now();
    if (now < this.#next) return;
    this.#next = now + EACH_MS;
    this.#screen.status(describeProgress(progress));
  }

  end(): void {
    this.#screen.status(null);
  }
}

function describeProgress(progress: VerifyProgress): string {
  const { events, total_events: total, log_bytes: bytes, total_log_bytes: totalBytes } = progress;
  const { say } = texts();
  const logs = totalBytes === 0 ? '' : say.checkLogProgress(formatSize(bytes), formatSize(totalBytes));
  return say.checkProgress(events, total) + logs;
}
