// What a process that plays runs does after an exception or a rejection that nothing has caught: it logs the defect,
// accepts nothing more, stores what is buffered and ends its engines. Runs stay as they are stored; the next start
// recovers them.
import { redact } from '../../kernel/redact.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import { safeText } from '../../terminal/safe-text.js';
import type { Io } from '../io.js';
import { logFailure } from '../open-writer.js';

export interface CrashWatch {
  orchestrator?: Pick<Orchestrator, 'abandon'>;
  // Refuses whatever comes from now on.
  stopTaking?: () => void;
}

// The members are set as the process comes to have them.
export function abandonOnCrash(dataDir: string, io: Io, log?: (error: unknown) => void): CrashWatch {
  const watch: CrashWatch = {};
  io.onCrash(async (error) => {
    logFailure(dataDir, io, '', error);
    if (log) log(error);
    else
      io.stderr.write(
        'parley: internal error, please report it: ' +
          `${safeText(redact(error instanceof Error ? (error.stack ?? error.message) : String(error)))}\n`,
      );
    watch.stopTaking?.();
    await watch.orchestrator?.abandon();
  });
  return watch;
}
