// Checks of runs, one at a time: a check reads a whole run, and two at once would need twice the memory. Callers that ask for the
// same run share its result. A check that nobody waits for any more is aborted.
import type { Check } from '../orchestrator/verify-run.js';
import { RequestError } from '../run/request-error.js';

export type VerifyRun = (runId: string, signal: AbortSignal) => Promise<readonly Check[]>;

interface Job {
  readonly result: Promise<readonly Check[]>;
  readonly abort: AbortController;
  callers: number;
}

export class VerifyQueue {
  readonly #verify: VerifyRun;
  readonly #limit: number;
  // By run, the one under way included.
  readonly #jobs = new Map<string, Job>();
  #last: Promise<unknown> = Promise.resolve();

  // `limit`: how many runs may be under way or waiting.
  constructor(verify: VerifyRun, limit: number) {
    this.#verify = verify;
    this.#limit = limit;
  }

  // `left` is aborted when the caller does not wait any more.
  async check(runId: string, left: AbortSignal): Promise<readonly Check[]> {
    const job = this.#jobs.get(runId) ?? this.#add(runId);
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

  #add(runId: string): Job {
    if (this.#jobs.size >= this.#limit) throw new RequestError('TOO_MANY_REQUESTS', `${this.#jobs.size} runs are being checked or wait for it, and ${this.#limit} is the limit. Try again later, or run parley verify on the server itself.`);
    const abort = new AbortController();
    const result = this.#last.then(() => {
      abort.signal.throwIfAborted();
      return this.#verify(runId, abort.signal);
    }).finally(() => {
      if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
    });
    const job: Job = { result, abort, callers: 0 };
    this.#jobs.set(runId, job);
    this.#last = result.catch(() => {});
    return job;
  }

  // A later caller starts anew.
  #drop(runId: string, job: Job): void {
    if (this.#jobs.get(runId) === job) this.#jobs.delete(runId);
    job.abort.abort(new RequestError('SHUTTING_DOWN', 'The check was stopped.'));
  }

  // Resolves when nothing is under way any more.
  async close(): Promise<void> {
    for (const [runId, job] of this.#jobs) this.#drop(runId, job);
    await this.#last;
  }
}
