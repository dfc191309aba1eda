// Checks of runs, one at a time: a check reads a whole run, and two at once would need twice the memory. Callers that
// ask for the same run share its result. One caller has only a few of the places, so that others can check as well. A
// check that nobody waits for any more is aborted.
import type { Check } from '../../audit/verify-run.js';
import { RequestError } from '../../run/request-error.js';

export type VerifyRun = (runId: string, signal: AbortSignal) => Promise<readonly Check[]>;

export interface VerifyLimits {
  // Runs that are being checked or wait for it.
  readonly total: number;
  // So many of them may have been requested by one caller.
  readonly perCaller: number;
}

interface Job {
  // Who requested it first.
  readonly caller: string;
  readonly result: Promise<readonly Check[]>;
  readonly abort: AbortController;
  callers: number;
}

export class VerifyQueue {
  readonly #verify: VerifyRun;
  readonly #limits: VerifyLimits;
  // By run, the one under way included.
  readonly #jobs = new Map<string, Job>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(verify: VerifyRun, limits: VerifyLimits) {
    this.#verify = verify;
    this.#limits = limits;
  }

  // `caller` is a key; `left` is aborted when the caller does not wait any more.
  async check(runId: string, caller: string, left: AbortSignal): Promise<readonly Check[]> {
    if (left.aborted) throw stopped();
    const job = this.#jobs.get(runId) ?? this.#add(runId, caller);
    job.callers += 1;
    const leave = (): void => {
      job.callers -= 1;
      if (job.callers === 0) this.#drop(runId, job);
    };
    left.addEventListener('abort', leave, { once: true });
    try {
      return await job.result;
    } finally {
      left.removeEventListener('abort', leave);
    }
  }

  #add(runId: string, caller: string): Job {
    const { total, perCaller } = this.#limits;
    const own = [...this.#jobs.values()].filter((job) => job.caller === caller).length;
    if (own >= perCaller)
      throw new RequestError(
        'TOO_MANY_REQUESTS',
        `${own} runs are being checked for this token or wait for it, and ${perCaller} is the limit for one ` +
          'token. Try again when one of them is done.',
      );
    if (this.#jobs.size >= total)
      throw new RequestError(
        'TOO_MANY_REQUESTS',
        `${this.#jobs.size} runs are being checked or wait for it, and ${total} is the limit. Try again later, or ` +
          'run parley verify on the server itself.',
      );
    const abort = new AbortController();
    const result = this.#last
      .then(() => {
        abort.signal.throwIfAborted();
        return this.#verify(runId, abort.signal);
      })
      .finally(() => {
        if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
      });
    const job: Job = { caller, result, abort, callers: 0 };
    this.#jobs.set(runId, job);
    this.#last = result.catch(() => {});
    return job;
  }

  // A later caller starts anew.
  #drop(runId: string, job: Job): void {
    if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
    job.abort.abort(stopped());
  }

  // Resolves when nothing is under way any more.
  async close(): Promise<void> {
    for (const [runId, job] of this.#jobs) this.#drop(runId, job);
    await this.#last;
  }
}

function stopped(): RequestError {
  return new RequestError('SHUTTING_DOWN', 'The check was stopped.');
}
