// One worker thread and the jobs that wait for it, one at a time. Callers take turns, however many jobs each of them
// has. A job that misses its deadline ends the thread, and the next job gets a new one. Nothing that happens in the
// thread reaches this process's output or ends this process.
import { Worker } from 'node:worker_threads';
import type { SchemaError } from '../messages/explain-schema-errors.js';

export interface CheckJob {
  readonly digest: string;
  readonly schema: string;
  // The value as JSON; without it the schema is only compiled.
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
  // The deadline, from when the thread has the job.
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

export interface Place {
  // Runs before all jobs without this flag.
  readonly first?: boolean;
  // Jobs with the same key belong to the same caller.
  readonly caller?: string;
}

const PROGRAM = new URL('./check-thread.mjs', import.meta.url);
// A thread that cannot load the library within this time is terminated; a busy machine needs a second or two.
const START_MS = 30_000;

export class CheckLane {
  readonly #limits: LaneLimits;
  readonly #first: Waiting[] = [];
  // Callers in the order of their turns.
  readonly #byCaller = new Map<string, Waiting[]>();
  #worker: Worker | null = null;
  #isReady = false;
  #isBusy = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return [...this.#byCaller.values()].reduce((sum, { length }) => sum + length, this.#first.length);
  }

  waitingOf(caller: string): number {
    return this.#byCaller.get(caller)?.length ?? 0;
  }

  // Never rejects.
  run(job: CheckJob, { first = false, caller = '' }: Place = {}): Promise<CheckAnswer> {
    return new Promise((resolve) => {
      const own = this.#byCaller.get(caller);
      if (first) this.#first.push({ job, resolve });
      else if (own) own.push({ job, resolve });
      else this.#byCaller.set(caller, [{ job, resolve }]);
      this.#next();
    });
  }

  #shift(): Waiting | undefined {
    if (this.#first.length > 0) return this.#first.shift();
    const [caller, own] = this.#byCaller.entries().next().value ?? [];
    if (caller === undefined || own === undefined) return undefined;
    // Moves the caller to the end of the queue.
    this.#byCaller.delete(caller);
    const next = own.shift();
    if (own.length > 0) this.#byCaller.set(caller, own);
    return next;
  }

  #next(): void {
    if (this.#isBusy) return;
    const next = this.#shift();
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
      // For instance out of memory. Messages of a dependency are not shown to anybody.
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
      const resourceLimits = {
        maxOldGenerationSizeMb: this.#limits.memoryMb,
        maxYoungGenerationSizeMb: 16,
        stackSizeMb: 4,
      };
      const workerData = { most: this.#limits.cache };
      this.#worker = new Worker(PROGRAM, {
        workerData,
        resourceLimits,
        env: {},
        execArgv: [],
        argv: [],
        // Kept from the output of this process. Not read either: a reader would keep an idle thread from letting the
        // process end.
        stdout: true,
        stderr: true,
      });
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
