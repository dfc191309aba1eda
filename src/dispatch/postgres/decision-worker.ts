// Decides questions whose time is over, as jobs of the database: each is taken by one of the hosts. A worker that breaks is replaced; what a
// host that died had taken is found by whoever looks after it late.
import { run, type Runner } from 'graphile-worker';
import { pause, type Timers } from '../../process/timers.js';
import { DECIDE, JOBS_SCHEMA, silentLogger, type DecideJob } from '../../store/postgres/jobs.js';
import type { Store } from '../../store/store.js';
import type { DispatchHandlers } from '../dispatch.js';

export interface WorkerDeps {
  readonly url: string;
  readonly store: Store;
  readonly timers: Timers;
}

const POLL_MS = 2000;
const REST_MS = 2000;
// It is only a few statements each time.
const CONCURRENCY = 2;

export class DecisionWorker {
  readonly #deps: WorkerDeps;
  readonly #handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>;
  readonly #closing = new AbortController();
  #runner: Runner | null = null;
  readonly #work: Promise<void>;

  constructor(deps: WorkerDeps, handlers: Pick<DispatchHandlers, 'decide' | 'onFailure'>) {
    this.#deps = deps;
    this.#handlers = handlers;
    this.#work = this.#keep();
  }

  async #keep(): Promise<void> {
    const { signal } = this.#closing;
    const logger = await silentLogger();
    while (!signal.aborted) {
      try {
        this.#runner = await run({
          connectionString: this.#deps.url, schema: JOBS_SCHEMA, concurrency: CONCURRENCY, maxPoolSize: CONCURRENCY + 2, pollInterval: POLL_MS, noHandleSignals: true, logger,
          taskList: { [DECIDE]: (payload) => this.#decide(payload as DecideJob) },
        });
        if (signal.aborted) await this.#runner.stop().catch(() => {});
        await this.#runner.promise;
      } catch (error) {
        if (!signal.aborted) this.#handlers.onFailure(error);
      }
      this.#runner = null;
      await pause(this.#deps.timers, REST_MS, signal);
    }
  }

  // Its time is over by the clock of the database, which is the same for all hosts.
  async #decide({ interaction_id: id }: DecideJob): Promise<void> {
    const interaction = await this.#deps.store.loadInteraction(id);
    if (interaction?.state === 'pending') await this.#handlers.decide(interaction);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#runner?.stop().catch(() => {});
    await this.#work;
  }
}
