// One worker thread and the jobs that wait for it, one at a time. A job that misses its deadline ends the thread, and the next
// job gets a new one. Nothing that happens in the thread reaches this process's output or ends this process.
import { Worker } from 'node:worker_threads';
import type { SchemaError } from '../kernel/explain-schema-errors.js';

export interface CheckJob {
  readonly digest: string;
  readonly schema: string;
  // As JSON; without it the schema is only compiled.
  readonly value?: string;
}

// Why a schema cannot be used, as check-thread.mjs reports it.
export interface Unusable {
  readonly problem: 'form' | 'async' | 'recursion' | 'pattern' | 'reference' | 'other' | 'memory';
  readonly detail?: string;
  readonly errors?: readonly SchemaError[];
}

export type CheckAnswer =
  | { readonly unusable?: Unusable; readonly findings?: readonly SchemaError[]; readonly overdue?: undefined }
  | { readonly overdue: true };

export interface LaneLimits {
  // From the moment the thread has the job.
  readonly deadlineMs: number;
  // A thread without work ends after this time.
  readonly idleMs: number;
  // Compiled schemas that a thread keeps.
  readonly cache: number;
  // The heap of the thread; beyond it the thread ends, and its job with it.
  readonly memoryMb: number;
}

interface Waiting {
  readonly job: CheckJob;
  readonly resolve: (answer: CheckAnswer) => void;
}

const PROGRAM = new URL('./check-thread.mjs', import.meta.url);
// A thread that cannot even load the library in this time is given up; a loaded machine needs a second or two.
const START_MS = 30_000;

export class CheckLane {
  readonly #limits: LaneLimits;
  readonly #waiting: Waiting[] = [];
  #worker: Worker | null = null;
  #isReady = false;
  #isBusy = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  // Never rejects. `first` goes ahead of the jobs that wait.
  run(job: CheckJob, { first = false } = {}): Promise<CheckAnswer> {
    return new Promise((resolve) => {
      if (first) this.#waiting.unshift({ job, resolve });
      else this.#waiting.push({ job, resolve });
      this.#next();
    });
  }

  #next(): void {
    if (this.#isBusy) return;
    const next = this.#waiting.shift();
    clearTimeout(this.#idle);
    if (!next) {
      // Neither an idle thread nor its timer keeps the process alive.
      this.#worker?.unref();
      this.#idle = setTimeout(() => this.#end(), this.#limits.idleMs).unref();
      return;
    }
    this.#isBusy = true;
    void this.#work(next.job).then((answer) => {
      this.#isBusy = false;
      next.resolve(answer);
      this.#next();
    });
  }

  #work(job: CheckJob): Promise<CheckAnswer> {
    return new Promise((resolve) => {
      const worker = this.#start();
      let timer: NodeJS.Timeout | undefined;
      const finish = (answer: CheckAnswer, isLost: boolean): void => {
        clearTimeout(timer);
        worker.removeAllListeners('message').removeAllListeners('error').removeAllListeners('exit');
        // Errors after the end are expected: the thread is being terminated.
        worker.on('error', () => {});
        if (isLost) this.#end();
        resolve(answer);
      };
      const send = (): void => {
        timer = setTimeout(() => finish({ overdue: true }, true), this.#limits.deadlineMs);
        worker.postMessage({ id: 0, ...job });
      };
      worker.on('message', (message: CheckAnswer & { readonly ready?: true }) => {
        if (!message.ready) return finish(message, false);
        clearTimeout(timer);
        this.#isReady = true;
        return send();
      });
      // Out of memory, say; what a dependency throws is not shown to anybody.
      worker.on('error', () => finish({ unusable: { problem: 'memory' } }, true));
      worker.on('exit', () => finish({ unusable: { problem: 'memory' } }, true));
      if (this.#isReady) send();
      else timer = setTimeout(() => finish({ overdue: true }, true), START_MS);
    });
  }

  // Without the environment and the options of this process: the thread needs neither.
  #start(): Worker {
    if (!this.#worker) {
      this.#isReady = false;
      const resourceLimits = { maxOldGenerationSizeMb: this.#limits.memoryMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
      const workerData = { most: this.#limits.cache };
      this.#worker = new Worker(PROGRAM, { workerData, resourceLimits, env: {}, execArgv: [], argv: [], stdout: true, stderr: true });
      this.#worker.stdout.resume();
      this.#worker.stderr.resume();
    }
    this.#worker.ref();
    return this.#worker;
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = null;
    this.#isReady = false;
  }
}
