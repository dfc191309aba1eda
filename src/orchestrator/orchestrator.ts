// The runs of one data directory, alive: turns are started as slots are free, questions are decided when their time is over.
// It opens with recovery and closes without leaving an engine behind. A run that waits costs nothing here.
import { setImmediate } from 'node:timers/promises';
import { isTerminal } from '../run/statechart.js';
import type { Actor, RunRecord } from '../store/store.js';
import { cancelIdle } from './cancel.js';
import { createRun, type CreateRunRequest } from './create-run.js';
import type { OrchestratorDeps } from './deps.js';
import { loadRun } from './load-run.js';
import { recover, type RecoverySettings } from './recover.js';
import { decide, reply, type Reply } from './reply.js';
import { runTurn, TurnControl } from './run-turn.js';

export interface OrchestratorSettings {
  // How many turns may run at once.
  readonly slots: number;
  readonly recovery: RecoverySettings;
  // A turn that ended in a way it should not have: a defect of ours, or the store is gone.
  readonly onFailure: (runId: string, error: unknown) => void;
}

interface ActiveTurn {
  readonly control: TurnControl;
  readonly done: Promise<void>;
}

export class Orchestrator {
  readonly #deps: OrchestratorDeps;
  readonly #settings: OrchestratorSettings;
  readonly #active = new Map<string, ActiveTurn>();
  #closing = false;
  #cancelTimer: (() => void) | null = null;
  // One look at the queue at a time.
  #filling: Promise<void> = Promise.resolve();

  private constructor(deps: OrchestratorDeps, settings: OrchestratorSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  static async open(deps: OrchestratorDeps, settings: OrchestratorSettings): Promise<Orchestrator> {
    await recover(deps, settings.recovery);
    const orchestrator = new Orchestrator(deps, settings);
    orchestrator.#wake();
    await orchestrator.#armDecision();
    return orchestrator;
  }

  async create(request: CreateRunRequest): Promise<RunRecord> {
    const run = await createRun(this.#deps, request);
    this.#wake();
    return run;
  }

  async reply(runId: string, given: Reply, actor: Actor | null = null): Promise<RunRecord> {
    const run = await reply(this.#deps, runId, given, actor);
    this.#wake();
    await this.#armDecision();
    return run;
  }

  // Resolves when the run is canceled and nothing of its engine is left.
  async cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    const idle = await cancelIdle(this.#deps, runId, actor);
    if (idle) return idle;
    const turn = this.#active.get(runId);
    turn?.control.cancel(actor);
    await turn?.done;
    const run = await loadRun(this.#deps.store, runId);
    return isTerminal(run.status) ? run : this.cancel(runId, actor);
  }

  // Resolves when the run has no turn under way.
  async settled(runId: string): Promise<RunRecord> {
    for (;;) {
      await this.#filling;
      const turn = this.#active.get(runId);
      await turn?.done;
      const run = await loadRun(this.#deps.store, runId);
      if (!turn && run.status !== 'queued' && run.status !== 'running') return run;
      // It is queued behind others: one of them makes room, or the queue is looked at in a moment.
      if (!turn) await Promise.race(this.#active.size > 0 ? [...this.#active.values()].map(({ done }) => done) : [setImmediate()]);
    }
  }

  // Running turns are ended; waiting runs are untouched.
  async close(): Promise<void> {
    this.#closing = true;
    this.#disarm();
    await this.#filling;
    for (const { control } of this.#active.values()) control.shutdown();
    await Promise.all([...this.#active.values()].map(({ done }) => done));
  }

  #wake(): void {
    this.#filling = this.#filling.then(() => this.#fill()).catch((error: unknown) => this.#settings.onFailure('', error));
  }

  async #fill(): Promise<void> {
    if (this.#closing || this.#active.size >= this.#settings.slots) return;
    const queued = await this.#deps.store.listQueued(this.#settings.slots);
    for (const runId of queued) {
      if (this.#active.size >= this.#settings.slots) return;
      const run = this.#active.has(runId) ? null : await this.#deps.store.loadRun(runId);
      if (run?.status === 'queued') this.#start(run);
    }
  }

  #start(run: RunRecord): void {
    const control = new TurnControl();
    const report = (error: unknown) => this.#settings.onFailure(run.run_id, error);
    const done = runTurn(this.#deps, run, control)
      .catch(report)
      .then(async () => {
        this.#active.delete(run.run_id);
        this.#wake();
        if (!this.#closing) await this.#armDecision();
      })
      .catch(report);
    this.#active.set(run.run_id, { control, done });
  }

  #disarm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  // One timer, for the earliest question that will be decided; one whose time is over is decided at once.
  async #armDecision(): Promise<void> {
    const next = await this.#deps.store.nextDecision();
    this.#disarm();
    if (!next || this.#closing) return;
    this.#cancelTimer = this.#deps.timers.set(Math.max(0, next.due_at - this.#deps.clock.now()), () => {
      this.#cancelTimer = null;
      void this.#decideDue().catch((error: unknown) => this.#settings.onFailure(next.run_id, error));
    });
  }

  async #decideDue(): Promise<void> {
    for (let next = await this.#deps.store.nextDecision(); next && next.due_at <= this.#deps.clock.now() && !this.#closing; next = await this.#deps.store.nextDecision()) {
      if ((await decide(this.#deps, next)) === null) break;
    }
    this.#wake();
    await this.#armDecision();
  }
}
