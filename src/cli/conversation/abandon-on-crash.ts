// Handles an exception or a rejection that no code has caught, in a process that executes runs: logs the defect,
// accepts no more work, stores buffered events and ends the engines. The stored runs stay unchanged; the next start
// recovers them.
import type { Log } from '../../kernel/log.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import type { Io } from '../io.js';
import { describe } from '../open-log.js';
import { texts } from '../language/language.js';

export interface CrashWatch {
  orchestrator?: Pick<Orchestrator, 'abandon'>;
  // Refuses all further requests.
  stopTaking?: () => void;
}

export interface CrashOptions {
  readonly log: Log;
  // Reports the defect to people; default: a line on stderr.
  readonly report?: (error: unknown) => void;
}

// The caller sets the members of the result as soon as it has them.
export function abandonOnCrash(io: Io, { log, report }: CrashOptions): CrashWatch {
  const watch: CrashWatch = {};
  io.onCrash(async (error) => {
    log.error(error, { message: 'internal error, please report it; the process stops' });
    if (report) report(error);
    else io.stderr.write(`${texts().say.internalError(describe(error))}\n`);
    watch.stopTaking?.();
    await watch.orchestrator?.abandon();
  });
  return watch;
}
