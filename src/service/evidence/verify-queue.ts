// Checks of runs, one at a time: a check uses a whole core. Callers that request the same run share its check and its
// result. One caller has only a few of the places, so that others can check as well. A check without waiting callers is
// aborted.
import type { Check, VerifyProgress } from '../../audit/verify-run.js';
import { refusal, type RequestError } from '../../run/request-error.js';

export type OnProgress = (progress: VerifyProgress) => void;
export type VerifyRun = (runId: string, signal: AbortSignal, onProgress?: OnProgress) => Promise<readonly Check[]>;

export interface VerifyLimits {
  // Runs that are being checked or are waiting for it.
  readonly total: number;
  // The maximum that one caller may be waiting for when it requests another.
  readonly perCaller: number;
}

export interface VerifyCaller {
  // One key per token.
  readonly key: string;
  // Aborted when the caller no longer waits.
  readonly left: AbortSignal;
  readonly onProgress?: OnProgress | undefined;
}

interface Job {
  readonly result: Promise<readonly Check[]>;
  readonly abort: AbortController;
  readonly callers: Set<VerifyCaller>;
}

export class VerifyQueue {
  readonly #verify: VerifyRun;
  readonly #limits: VerifyLimits;
  // By run, including the check in progress.
  readonly #jobs = new Map<string, Job>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(verify: VerifyRun, limits: VerifyLimits) {
    this.#verify = verify;
    this.#limits = limits;
  }

  // Throws at once if the check is refused. Joining a check that others wait for is never refused.
  check(runId: string, caller: VerifyCaller): Promise<readonly Check[]> {
    const { left } = caller;
    if (left.aborted) throw stopped();
    const job = this.#jobs.get(runId) ?? this.#add(runId, caller.key);
    job.callers.add(caller);
    const leave = (): void => {
      job.callers.delete(caller);
      if (job.callers.size === 0) this.#drop(runId, job);
    };
    left.addEventListener('abort', leave, { once: true });
    return job.result.finally(() => left.removeEventListener('abort', leave));
  }

  // How many checks come before that of this run. They run in the order in which they were requested.
  checksBefore(runId: string): number {
    return Math.max(0, [...this.#jobs.keys()].indexOf(runId));
  }

  #add(runId: string, key: string): Job {
    const { total, perCaller } = this.#limits;
    const isOwn = ({ callers }: Job): boolean => [...callers].some((caller) => caller.key === key);
    const own = [...this.#jobs.values()].filter(isOwn).length;
    if (own >= perCaller) throw refusal('TOO_MANY_REQUESTS.checks_token', { count: own, limit: perCaller });
    if (this.#jobs.size >= total) throw refusal('TOO_MANY_REQUESTS.checks', { count: this.#jobs.size, limit: total });
    const abort = new AbortController();
    const result = this.#last
      .then(() => {
        abort.signal.throwIfAborted();
        return this.#verify(runId, abort.signal, (progress) => {
          for (const { onProgress } of job.callers) onProgress?.(progress);
        });
      })
      .finally(() => {
        if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
      });
    const job: Job = { result, abort, callers: new Set() };
    this.#jobs.set(runId, job);
    this.#last = result.catch(() => {});
    return job;
  }

  // A later caller starts a new check.
  #drop(runId: string, job: Job): void {
    if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
    job.abort.abort(stopped());
  }

  // Resolves when no check is in progress.
  async close(): Promise<void> {
    for (const [runId, job] of this.#jobs) this.#drop(runId, job);
    await this.#last;
  }
}

function stopped(): RequestError {
  return refusal('SHUTTING_DOWN.check_stopped');
}
