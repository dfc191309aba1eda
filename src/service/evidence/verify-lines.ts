// A check as JSON lines: where it stands, and at the end its result or error. The first line is written at once, and no
// pause between two lines is longer than `LINE_MS`, so readers can distinguish a long check from a dead connection.
import { PassThrough, type Readable } from 'node:stream';
import type * as z from 'zod';
import type { Check, VerifyProgress } from '../../audit/verify-run.js';
import { Alarm, type Timers } from '../../process/timers.js';
import { envelope, type Refusal } from '../api/error-envelope.js';
import type { verification, verifyLine } from '../schemas.js';
import type { VerifyCaller, VerifyQueue } from './verify-queue.js';

export const LINE_MS = 5000;

export type VerifyLine = z.input<typeof verifyLine>;

export interface LinesOptions {
  readonly timers: Timers;
  // Explains an error for the caller.
  readonly explain: (error: unknown) => Refusal;
}

// Throws at once if the check is refused.
export function checkAsLines(
  checks: VerifyQueue,
  runId: string,
  caller: Omit<VerifyCaller, 'onProgress'>,
  { timers, explain }: LinesOptions,
): Readable {
  const lines = new PassThrough();
  const write = (line: VerifyLine): void => void lines.write(`${JSON.stringify(line)}\n`);
  const alarm = new Alarm(timers);
  let progress: VerifyProgress | null = null;
  const report = (): void => {
    if (caller.left.aborted) return;
    write(
      progress ? { type: 'progress', ...progress } : { type: 'waiting', checks_before: checks.checksBefore(runId) },
    );
    alarm.set(LINE_MS, report);
  };
  const onProgress = (next: VerifyProgress): void => {
    progress = next;
    report();
  };
  const checking = checks.check(runId, { ...caller, onProgress });
  report();
  void checking
    .then(
      (found) => write({ type: 'result', ...describeChecks(runId, found) }),
      (error: unknown) => write({ type: 'error', ...envelope(explain(error)) }),
    )
    .finally(() => {
      alarm.clear();
      lines.end();
    });
  return lines;
}

export function describeChecks(runId: string, checks: readonly Check[]): z.output<typeof verification> {
  return {
    run_id: runId,
    ok: checks.every(({ ok }) => ok),
    checks: checks.map(({ name, ok, finding }) => ({ name, ok, finding })),
  };
}
