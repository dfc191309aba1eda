// Opens the logs of a process: parley.log in the data directory for failures, and stderr of a server for everything
// else. Both write one JSON object per line with pino, without secrets and without control characters.
import { closeSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pino, stdTimeFunctions, type Logger } from 'pino';
import { openToAppendSync } from '../files/read-file.js';
import { realPathOf } from '../files/real-path.js';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { redact } from '../kernel/redact.js';
import { safeText } from '../terminal/safe-text.js';
import type { Io } from './io.js';

// Opens parley.log. Every line is written synchronously, so it survives a crash of the process right after it. A log
// that cannot be written is ignored: it must not break the work whose failure it reports.
export function openLogFile(dataDir: string, { clock }: { readonly clock: Clock }): Log {
  const logger = pino(
    {
      level: 'error',
      base: null,
      messageKey: 'message',
      timestamp: () => `,"ts":"${toTimestamp(clock.now())}"`,
      formatters: { level: (level) => ({ level }) },
      serializers: { error: describe },
    },
    { write: (line: string) => appendLine(dataDir, line) },
  );
  return {
    error: (error, { runId, message } = {}) => {
      try {
        logger.error({ run_id: runId, error }, message);
      } catch {
        // The file cannot be written.
      }
    },
  };
}

// Opens the file for each line, so that a file that was rotated or deleted is created again. Does not follow a link and
// does not write into a pipe.
function appendLine(dataDir: string, line: string): void {
  const file = openToAppendSync(join(realPathOf(dataDir) ?? dataDir, 'parley.log'));
  try {
    writeSync(file, line);
  } finally {
    closeSync(file);
  }
}

export function openServerLog(level: string, { stderr }: Pick<Io, 'stderr'>): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      serializers: {
        err: (error: unknown) =>
          error instanceof Error
            ? { type: error.name, message: safeText(redact(error.message)), stack: describe(error) }
            : describe(error),
      },
    },
    stderr,
  );
}

// Writes each failure to the file and to the log of the server.
export function joinLogs(file: Log, server: Pick<Logger, 'error'>): Log {
  return {
    error: (error, context = {}) => {
      file.error(error, context);
      const { runId, message = 'a turn or a queue poll failed' } = context;
      server.error({ err: error, run_id: runId }, message);
    },
  };
}

// Returns the stack of an error, or the text of another value.
export function describe(error: unknown): string {
  return safeText(redact(error instanceof Error ? (error.stack ?? error.message) : textOf(error)));
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a value of type ${typeof value} that cannot be shown`;
  }
}
