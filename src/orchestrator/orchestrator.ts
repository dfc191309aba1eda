// The runs of one data directory, alive: turns are started as slots are free, questions are decided when their time is over.
// It opens with recovery and closes without leaving an engine behind. A run that waits costs nothing here.
import { setImmediate } from 'node:timers/promises';
import type { Dispatch } from '../dispatch/dispatch.js';
import { EmbeddedDispatch } from '../dispatch/embedded.js';
import { isTerminal } from '../run/statechart.js';
import type { Actor, RunRecord } from '../store/store.js';
import { cancelIdle } from './cancel.js';
import { continueRun, retryRun, type ContinueRequest } from './continue-run.js';
import { createRun, type CreateRunRequest } from './create-run.js';
import type { OrchestratorDeps } from './deps.js';
import { exportingStore, markExportsClean, repairAllExports, takeCleanMark } from './exporting-store.js';
import { loadRun } from './load-run.js';
import { recover, recoverWaitingRuns, type RecoverySettings } from './recover.js';
import { decide, reply, type Reply } from './reply.js';
import { failInternally, runTurn, TurnControl } from './run-turn.js';
import { LostRunError } from './turn-writer.js';

export interface OrchestratorSettings {
  // How many turns may run at once.
  readonly slots: number;
  readonly recovery: RecoverySettings;
  // A turn that ended in a way it should not have: a defect of ours, or the store is gone.
  readonly onFailure: (runId: string, error: unknown) => void;
}

export class Orchestrator {
  readonly #deps: OrchestratorDeps;
  readonly #settings: OrchestratorSettings;
  readonly #dispatch: Dispatch;
  // The turns under way, to end them from outside.
  readonly #controls = new Map<string, { readonly control: TurnControl; readonly over: Promise<void> }>();
  #closing = false;
  #recovering: Promise<void> = Promise.resolve();
  #exportsClean = false;
  // Some file could not be written.
  readonly #torn: () => boolean;

  private constructor(deps: OrchestratorDeps, settings: OrchestratorSettings, torn: () => boolean) {
    this.#deps = deps;
    this.#settings = settings;
    this.#torn = torn;
    this.#dispatch = new EmbeddedDispatch(
      deps,
      {
        startTurn: (run) => this.#startTurn(run),
        decide: async (interaction) => (await decide(deps, interaction)) !== null,
        onFailure: (error) => settings.onFailure('', error),
      },
      settings.slots,
    );
  }

  static async open(given: OrchestratorDeps, settings: OrchestratorSettings): Promise<Orchestrator> {
    let torn = false;
    const store = exportingStore(given.store, given.dataDir, (error) => {
      if (!torn) settings.onFailure('', error);
      torn = true;
    });
    const deps = { ...given, store };
    const clean = takeCleanMark(given.dataDir);
    await recover(deps, settings.recovery);
    const orchestrator = new Orchestrator(deps, settings, () => torn);
    orchestrator.#exportsClean = clean;
    orchestrator.#recovering = orchestrator.#lookAfter();
    orchestrator.#dispatch.wake();
    return orchestrator;
  }

  async create(request: CreateRunRequest): Promise<RunRecord> {
    const run = await createRun(this.#deps, request);
    this.#dispatch.wake();
    return run;
  }

  async reply(runId: string, given: Reply, actor: Actor | null = null): Promise<RunRecord> {
    const run = await reply(this.#deps, runId, given, actor);
    this.#dispatch.wake();
    return run;
  }

  // A new run on the session of an ended one.
  async continueFrom(runId: string, request: ContinueRequest): Promise<RunRecord> {
    const run = await continueRun(this.#deps, runId, request);
    this.#dispatch.wake();
    return run;
  }

  async retry(runId: string): Promise<RunRecord> {
    const run = await retryRun(this.#deps, runId);
    this.#dispatch.wake();
    return run;
  }

  // Resolves when the run is canceled and nothing of its engine is left.
  async cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    const idle = await cancelIdle(this.#deps, runId, actor);
    if (idle) return idle;
    const turn = this.#controls.get(runId);
    turn?.control.cancel(actor);
    await turn?.over;
    const run = await loadRun(this.#deps.store, runId);
    return isTerminal(run.status) ? run : this.cancel(runId, actor);
  }

  // Resolves when everything that the last one left behind has been looked at. Runs can be created and answered before.
  recovered(): Promise<void> {
    return this.#recovering;
  }

  async #lookAfter(): Promise<void> {
    try {
      await recoverWaitingRuns(this.#deps, () => this.#closing);
      this.#exportsClean ||= await repairAllExports(this.#deps.store, this.#deps.dataDir, () => this.#closing);
    } catch (error) {
      this.#settings.onFailure('', error);
    }
  }

  // Resolves when the run has no turn under way.
  async settled(runId: string): Promise<RunRecord> {
    for (;;) {
      await this.#dispatch.idle();
      const turn = this.#controls.get(runId);
      await turn?.over;
      const run = await loadRun(this.#deps.store, runId);
      if (!turn && run.status !== 'queued' && run.status !== 'running') return run;
      // It is queued behind others: one of them makes room, or the queue is looked at in a moment.
      if (!turn) await Promise.race(this.#controls.size > 0 ? [...this.#controls.values()].map(({ over }) => over) : [setImmediate()]);
    }
  }

  // Running turns are ended; waiting runs are untouched.
  async close(): Promise<void> {
    this.#closing = true;
    const closed = this.#dispatch.close();
    for (const { control } of this.#controls.values()) control.shutdown();
    await closed;
    await this.#recovering;
    if (this.#exportsClean && !this.#torn()) markExportsClean(this.#deps.dataDir);
  }

  #startTurn(run: RunRecord): Promise<void> {
    const control = new TurnControl();
    const played = runTurn(this.#deps, run, control)
      .then(() => {}, async (error: unknown) => {
        this.#settings.onFailure(run.run_id, error);
        // Not over a run that belongs to somebody else by now. If this cannot be stored either, the run is left alone.
        if (!(error instanceof LostRunError)) await failInternally(this.#deps, run.run_id, error);
      })
      .finally(() => this.#controls.delete(run.run_id));
    this.#controls.set(run.run_id, { control, over: played.catch(() => {}) });
    if (this.#closing) control.shutdown();
    return played;
  }
}
