// The live runs of one data directory: starts turns when slots are free, and decides expired questions. It opens with
// recovery and closes without leaving an engine process behind. A waiting run uses no resources here.
import type { Dispatch, DispatchHandlers } from '../dispatch/dispatch.js';
import { EmbeddedDispatch } from '../dispatch/embedded.js';
import { pause } from '../process/timers.js';
import { refusal } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import type { Actor, InteractionRecord, RunRecord } from '../store/store.js';
import { cancelIdle } from '../commands/cancel.js';
import { PeerWork } from './peer-work.js';
import { continueRun, retryRun, type ContinueRequest, type RetryRequest } from '../commands/continue-run.js';
import type { CreateRunRequest } from '../commands/create-request.js';
import { createRun } from '../commands/create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { deleteRun, finishDeletions, type DeletedBy } from '../commands/delete-run.js';
import { forkRun } from '../commands/fork-run.js';
import { JournalFiles } from '../journal/journal-files.js';
import { loadRun } from '../journal/load-run.js';
import { beginRecovery, endOldEngines, recoverInterrupted, recoverWaitingRuns } from '../recovery/recover.js';
import { probeEngines } from '../turn/explain-resume.js';
import { decide, replyToRun, type Reply } from '../commands/reply.js';
import { endsAtDeadline, failWaiting, PROCESS_LOST, WAITED_TOO_LONG } from '../turn/residents/lost-process.js';
import { Residents } from '../turn/residents/residents.js';
import { failInternally, NotBegunError } from '../turn/begin-turn.js';
import { runTurn } from '../turn/run-turn.js';
import { TurnControl } from '../turn/turn-control.js';
import { LostRunError } from '../turn/turn-writer.js';
import { withRetries } from '../recovery/restart-retry.js';
import {
  RESIDENT_LIMITS,
  type CloseOptions,
  type Interrupted,
  type OrchestratorSettings,
} from './orchestrator-settings.js';
import { sweep, type RetentionRules } from '../commands/retention.js';
import { waitAtMost } from './wait-at-most.js';
import { track } from './track.js';
import { CommitWakeups, type Wakeups } from '../journal/wakeups.js';

// The pause between attempts to store the end of a turn, and between checks of a queue whose runs could not be started.
const RETRY_MS = 1000;
const QUIET_MS = 100;

export class Orchestrator {
  readonly #deps: OrchestratorDeps;
  readonly #settings: OrchestratorSettings;
  readonly #dispatch: Dispatch;
  // The running turns, so that cancel and close can end them.
  readonly #residents: Residents;
  readonly #controls = new Map<string, { readonly control: TurnControl; readonly over: Promise<void> }>();
  readonly #files: JournalFiles;
  readonly #wakeups: CommitWakeups;
  readonly #peers: PeerWork;
  readonly #closing = new AbortController();
  #recovering: Promise<void> = Promise.resolve();
  // Changes that callers are making now, and pending ends of runs: by callers, or because a process exited.
  readonly #changes = new Set<Promise<void>>();
  readonly #endings = new Set<Promise<void>>();
  #stopping = false;
  // Set when no event may be stored any more, because it would be missing in the journal files.
  #closed = false;
  #runsTurns: boolean;

  private constructor(deps: OrchestratorDeps, settings: OrchestratorSettings, files: JournalFiles) {
    this.#deps = deps;
    this.#settings = settings;
    this.#runsTurns = settings.runsTurns ?? true;
    this.#files = files;
    this.#wakeups = new CommitWakeups(deps.store);
    this.#residents = new Residents(
      deps.timers,
      settings.residents ?? RESIDENT_LIMITS,
      (runId) => void track(this.#endings, this.#loseProcess(runId)),
      (runId) => this.#peers.release(runId),
    );
    const handlers: DispatchHandlers = {
      startTurn: (run) => this.#startTurn(run),
      decide: (interaction) => this.#decide(interaction),
      onFailure: (error) => settings.onFailure('', error),
    };
    this.#dispatch =
      deps.createDispatch?.(handlers, settings.slots) ??
      new EmbeddedDispatch(deps, handlers, { slots: settings.slots });
    this.#peers = new PeerWork({
      deps,
      recovery: settings.recovery,
      controls: this.#controls,
      residents: this.#residents,
      journalFiles: files,
      cancel: (runId, actor) => this.cancel(runId, actor),
      onFailure: settings.onFailure,
    });
  }

  static async open(baseDeps: OrchestratorDeps, settings: OrchestratorSettings): Promise<Orchestrator> {
    const deps = settings.recovery.running === 'retry' ? withRetries(baseDeps, settings.onFailure) : baseDeps;
    await finishDeletions(deps, settings.onFailure);
    const files = new JournalFiles(
      deps,
      (error) => settings.onFailure('', error),
      deps.files.layout,
      (runId, seq) => deps.files.markExported(runId, seq),
    );
    await endOldEngines(deps).catch((error: unknown) => settings.onFailure('', error));
    const orchestrator = new Orchestrator(deps, settings, files);
    // Without other hosts no process works on the orphans that this start finds.
    if (deps.ownership.pollMs === null) await beginRecovery(orchestrator.#peers.recovery);
    if (settings.recoversBeside !== true) await recoverInterrupted(orchestrator.#peers.recovery);
    if (deps.mayNeedProcess) await probeEngines(deps);
    orchestrator.#recovering = orchestrator.#recoverLater();
    orchestrator.#peers.start();
    orchestrator.#wake();
    return orchestrator;
  }

  #wake(): void {
    if (this.#runsTurns) this.#dispatch.wake();
  }

  // Starts turns from now on, if the orchestrator was opened with `runsTurns: false`.
  play(): void {
    this.#runsTurns = true;
    this.#wake();
  }

  // Changes how many turns may run at the same time. Running turns continue.
  setSlots(slots: number): void {
    this.#dispatch.setSlots(slots);
    this.#wake();
  }

  // Rejects new work while shutting down. Work accepted earlier still starts its turn first.
  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#stopping) throw refusal('SHUTTING_DOWN.change');
    try {
      return await track(this.#changes, work());
    } finally {
      this.#wake();
    }
  }

  // `roots`: the folders in which the caller may let runs work; null: any folder.
  async create(request: CreateRunRequest, actor?: Actor, roots: readonly string[] | null = null): Promise<RunRecord> {
    return this.#change(() => createRun(this.#deps, request, { actor, roots }));
  }

  async reply(runId: string, reply: Reply, actor: Actor | null = null): Promise<RunRecord> {
    // A repeated reply returns its run, even while that is recovering.
    return this.#change(() =>
      replyToRun(this.#deps, runId, { reply, actor }).catch((error: unknown) => {
        this.#refuseRecovering(runId);
        throw error;
      }),
    );
  }

  // Creates a run that continues the session of an ended run.
  async continueFrom(runId: string, request: ContinueRequest, actor?: Actor): Promise<RunRecord> {
    this.#refuseRecovering(runId);
    return this.#change(() => continueRun(this.#deps, runId, { request, actor }));
  }

  // Creates a run that starts with a copy of the conversation; the source run is unchanged.
  async fork(runId: string, request: ContinueRequest, actor?: Actor): Promise<RunRecord> {
    this.#refuseRecovering(runId);
    return this.#change(() => forkRun(this.#deps, runId, { request, actor }));
  }

  async retry(runId: string, request: RetryRequest = {}, actor?: Actor): Promise<RunRecord> {
    this.#refuseRecovering(runId);
    return this.#change(() => retryRun(this.#deps, runId, { request, actor }));
  }

  // Whether the run was interrupted, and its last output is still to be read. Its end is not known before that.
  isRecovering(runId: string): boolean {
    return this.#peers.isRecovering(runId);
  }

  #refuseRecovering(runId: string): void {
    if (this.isRecovering(runId)) throw refusal('RUN_RECOVERING', { run: runId });
  }

  // Resolves when the run is canceled and no process of its engine is left. Accepted as long as turns are running.
  async cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    if (this.#closed) throw refusal('SHUTTING_DOWN.change');
    return track(this.#endings, this.#cancel(runId, actor));
  }

  async #cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    for (;;) {
      // The process must not print after the run's last event is stored.
      const { status } = await loadRun(this.#deps.store, runId);
      if (status === 'waiting_user' || status === 'queued') {
        if (await this.#peers.cancelHeld(runId, actor, this.#wakeups)) continue;
        await this.#endResident(runId, status);
      }
      const idle = await cancelIdle(this.#deps, runId, actor);
      if (idle) return idle;
      const turn = this.#controls.get(runId);
      if (turn) {
        await turn.control.cancel({ at: this.#deps.clock.now(), actor: actor ?? null });
        await turn.over;
      }
      const run = await loadRun(this.#deps.store, runId);
      if (run.status === 'canceled') return run;
      if (isTerminal(run.status)) throw refusal('RUN_ENDED.before_cancel', { run: runId, status: run.status });
      if (run.status !== 'running' || this.#controls.has(runId)) continue;
      // Another host runs it, or its turn was lost.
      await this.#peers.cancelElsewhere(run, actor, this.#wakeups);
    }
  }

  // Deletes an ended run with its files.
  async delete(runId: string, by?: DeletedBy): Promise<void> {
    this.#refuseRecovering(runId);
    const isRunHere = this.#controls.has(runId) || this.#residents.has(runId);
    return this.#change(() => deleteRun(this.#deps, runId, { isRunHere, by, onFailure: this.#settings.onFailure }));
  }

  // Deletes ended runs by the retention rules, after the recovery of this start has finished.
  async sweep(rules: RetentionRules): Promise<string[]> {
    await this.#recovering;
    return sweep(this.#deps, rules, { signal: this.#closing.signal, onFailure: this.#settings.onFailure });
  }

  // For callers that watch a run.
  get wakeups(): Wakeups {
    return this.#wakeups;
  }

  // Rewrites the journal files of a run if they were removed.
  restoreFiles(runId: string): Promise<void> {
    return this.#closed ? Promise.resolve() : this.#files.restore(runId);
  }

  // Resolves when every run of the previous process has been ended or checked. Other runs can be created and answered
  // before that.
  recovered(): Promise<void> {
    return this.#recovering;
  }

  async #recoverLater(): Promise<void> {
    const stopped = () => this.#closing.signal.aborted;
    const { recovery } = this.#peers;
    for (const work of [
      () => recoverInterrupted(recovery, () => this.#wake()),
      () => recoverWaitingRuns(recovery),
      () => this.#files.repair(stopped),
    ])
      await work().catch((error: unknown) => this.#settings.onFailure('', error));
  }

  // Resolves when the run has no running turn.
  async waitUntilIdle(runId: string): Promise<RunRecord> {
    const watch = this.#wakeups.watch(runId);
    try {
      for (;;) {
        const { version } = watch;
        const run = await loadRun(this.#deps.store, runId);
        const turn = this.#controls.get(runId);
        if (!turn && run.status !== 'queued' && run.status !== 'running') return run;
        await (turn?.over ?? watch.changed(version));
      }
    } finally {
      watch.close();
    }
  }

  // Resolves when no run is queued and no turn is running, so a program with no other work can exit.
  async quiet(): Promise<void> {
    for (;;) {
      await this.#dispatch.idle();
      const turns = [...this.#controls.values()].map(({ over }) => over);
      if (turns.length > 0) await Promise.race(turns);
      else if (!(await this.#deps.ownership.peek())) return;
      else await new Promise((resolve) => this.#deps.timers.set(QUIET_MS, () => resolve(null)));
    }
  }

  // Lets running turns finish within the grace period and then ends them. Starts no new turn and leaves waiting runs
  // unchanged.
  async close({ graceMs = 0, hurry, onDrain }: CloseOptions = {}): Promise<Interrupted> {
    this.#stopping = true;
    if (this.#changes.size > 0) {
      await Promise.all(this.#changes);
      await this.#dispatch.idle();
    }
    const closed = this.#dispatch.close();
    // Other hosts can continue waiting runs once no process waits here.
    if (this.#deps.ownership.hasPeers) await this.#residents.close();
    if (graceMs > 0 && this.#controls.size > 0) {
      onDrain?.(this.#controls.size);
      const turns = Promise.all([...this.#controls.values()].map(({ over }) => over));
      await waitAtMost(this.#deps.timers, graceMs, Promise.race([turns, ...(hurry ? [hurry] : [])]));
    }
    // Counted before the turns end, because an interrupted run may queue its retry. Queued runs in a shared store are
    // started by other hosts.
    const queued = this.#deps.ownership.hasPeers
      ? 0
      : await this.#deps.store.countRuns().then(
          (counts) => counts.queued,
          () => 0,
        );
    this.#closing.abort();
    const turns = this.#controls.size;
    for (const { control } of this.#controls.values()) control.shutdown();
    await closed;
    await this.#deps.store.releaseStarts().catch((error: unknown) => this.#settings.onFailure('', error));
    await this.#peers.close();
    await this.#residents.close();
    await this.#recovering;
    this.#closed = true;
    // With other hosts, the end of a run may depend on one of them, and any of them can write the journal files from
    // the store.
    if (!this.#deps.ownership.hasPeers) await Promise.all(this.#endings);
    await this.#files.close();
    this.#wakeups.close();
    return { turns, queued };
  }

  // Call it after a crash of this process: starts no turn, stores buffered events and ends the engines. Runs keep their
  // stored state.
  async abandon(): Promise<void> {
    this.#stopping = true;
    this.#closing.abort();
    void this.#dispatch.close();
    const turns = [...this.#controls.values()];
    await Promise.all(turns.map(({ control }) => control.abandon()));
    this.#files.flush();
    await Promise.all([...turns.map(({ over }) => over), this.#residents.close()]);
  }

  #startTurn(run: RunRecord): Promise<void> {
    const control = new TurnControl();
    const marksStarts = this.#settings.recovery.queued === 'requeue';
    const turn = runTurn({ deps: this.#deps, queued: run, control, residents: this.#residents, marksStarts })
      .then(
        () => {},
        (error: unknown) => (control.isLost ? undefined : this.#afterFailure(run.run_id, error)),
      )
      .finally(() => this.#controls.delete(run.run_id));
    this.#controls.set(run.run_id, { control, over: turn.catch(() => {}) });
    if (this.#closing.signal.aborted) control.shutdown();
    return turn;
  }

  // For a waiting run, first waits for its turn to end: only then is its resident process known.
  async #endResident(runId: string, status: 'waiting_user' | 'queued'): Promise<void> {
    if (status === 'waiting_user') await this.#controls.get(runId)?.over;
    await this.#residents.end(runId);
  }

  // A question timed out. Decides it, or ends the process of a run that needs it and fails the run.
  async #decide(interaction: InteractionRecord): Promise<boolean> {
    const run = await this.#deps.store.loadRun(interaction.run_id);
    if (!run || !endsAtDeadline(run)) return (await decide(this.#deps, interaction)) !== null;
    // The host that has the process ends it and decides the expired question.
    if (await this.#deps.peers.isHeldElsewhere(run.run_id)) return false;
    await this.#endResident(run.run_id, 'waiting_user');
    return failWaiting(this.#deps, run.run_id, interaction.interaction_id, WAITED_TOO_LONG);
  }

  async #loseProcess(runId: string): Promise<void> {
    try {
      await this.#controls.get(runId)?.over;
      const pending = await this.#deps.store.loadPendingInteraction(runId);
      if (pending) await failWaiting(this.#deps, runId, pending.interaction_id, PROCESS_LOST);
    } catch (error) {
      this.#settings.onFailure(runId, error);
    }
  }

  // The number of resident processes that wait for an answer.
  get residents(): number {
    return this.#residents.count;
  }

  // The run must not keep its state: fails it as soon as that can be stored, or at the next start.
  async #afterFailure(runId: string, error: unknown): Promise<void> {
    this.#settings.onFailure(runId, error instanceof NotBegunError ? error.cause : error);
    // Another host owns the run now.
    if (error instanceof LostRunError) return;
    // The run is still queued and may start later.
    if (error instanceof NotBegunError) throw error;
    for (;;) {
      try {
        return await failInternally(this.#deps, runId, error);
      } catch (again) {
        if (again instanceof LostRunError || this.#closing.signal.aborted) throw again;
      }
      await pause(this.#deps.timers, RETRY_MS, this.#closing.signal);
    }
  }
}
