// The runs of one data directory, alive: turns are started as slots are free, questions are decided when their time is
// over. It opens with recovery and closes without leaving an engine behind. A run that waits costs nothing here.
import type { Dispatch, DispatchHandlers } from '../dispatch/dispatch.js';
import { EmbeddedDispatch } from '../dispatch/embedded.js';
import { pause } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import type { Actor, InteractionRecord, RunRecord } from '../store/store.js';
import { cancelIdle, rememberCancel } from '../commands/cancel.js';
import { ClusterWork } from './cluster-work.js';
import { continueRun, retryRun, type ContinueRequest, type RetryRequest } from '../commands/continue-run.js';
import type { CreateRunRequest } from '../commands/create-request.js';
import { createRun } from '../commands/create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { deleteRun, finishDeletions, type DeletedBy } from '../commands/delete-run.js';
import { endFromLogs } from '../turn/end-from-logs.js';
import { forkRun } from '../commands/fork-run.js';
import { JournalFiles } from '../journal/journal-files.js';
import { loadRun } from '../journal/load-run.js';
import { recover, recoverWaitingRuns } from '../recovery/recover.js';
import { probeEngines } from '../turn/explain-resume.js';
import { decide, reply, type Reply } from '../commands/reply.js';
import { Residents } from '../turn/residents.js';
import { failInternally, NotBegunError, runTurn } from '../turn/run-turn.js';
import { failWaiting, PROCESS_LOST, WAITED_TOO_LONG } from '../turn/sticky.js';
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

// Between tries to store the end of a turn, and between looks at a queue whose runs could not be started just now.
const RETRY_MS = 1000;
const QUIET_MS = 100;

export class Orchestrator {
  readonly #deps: OrchestratorDeps;
  readonly #settings: OrchestratorSettings;
  readonly #dispatch: Dispatch;
  // The turns under way, to end them from outside.
  readonly #residents: Residents;
  readonly #controls = new Map<string, { readonly control: TurnControl; readonly over: Promise<void> }>();
  readonly #files: JournalFiles;
  readonly #wakeups: CommitWakeups;
  // What it does for the others, and they for it.
  readonly #cluster: ClusterWork | null;
  readonly #closing = new AbortController();
  #recovering: Promise<void> = Promise.resolve();
  // Changes that callers make right now; and the endings of runs, by callers or because a process is gone.
  readonly #changes = new Set<Promise<void>>();
  readonly #endings = new Set<Promise<void>>();
  #stopping = false;
  // Nothing is stored any more that should be in the files, too.
  #closed = false;
  #plays: boolean;

  private constructor(deps: OrchestratorDeps, settings: OrchestratorSettings, files: JournalFiles) {
    this.#deps = { ...deps, marksStarts: settings.recovery.queued === 'requeue' };
    this.#settings = settings;
    this.#plays = settings.plays ?? true;
    this.#files = files;
    this.#wakeups = new CommitWakeups(deps.store);
    this.#residents = new Residents(
      deps.timers,
      settings.residents ?? RESIDENT_LIMITS,
      (runId) => void track(this.#endings, this.#loseProcess(runId)),
      (runId) => void this.#cluster?.letGo(runId),
    );
    const handlers: DispatchHandlers = {
      startTurn: (run) => this.#startTurn(run),
      decide: (interaction) => this.#decide(interaction),
      onFailure: (error) => settings.onFailure('', error),
    };
    this.#dispatch =
      deps.cluster?.createDispatch(handlers, settings.slots) ?? new EmbeddedDispatch(deps, handlers, settings.slots);
    this.#cluster = deps.cluster
      ? new ClusterWork(
          deps,
          this.#controls,
          this.#residents,
          files,
          (runId, actor) => this.cancel(runId, actor),
          settings.onFailure,
        )
      : null;
  }

  static async open(given: OrchestratorDeps, settings: OrchestratorSettings): Promise<Orchestrator> {
    const deps = settings.recovery.running === 'retry' ? withRetries(given, settings.onFailure) : given;
    await finishDeletions(deps, settings.onFailure);
    const files = new JournalFiles(
      deps,
      (error) => settings.onFailure('', error),
      deps.cluster?.files ?? 'each',
      (runId, seq) => deps.cluster?.markExported(runId, seq) ?? Promise.resolve(),
    );
    await recover(deps, files, settings.recovery, settings.onFailure);
    if (deps.sticky) await probeEngines(deps);
    const orchestrator = new Orchestrator(deps, settings, files);
    orchestrator.#recovering = orchestrator.#lookAfter();
    orchestrator.#cluster?.begin();
    orchestrator.#wake();
    return orchestrator;
  }

  #wake(): void {
    if (this.#plays) this.#dispatch.wake();
  }

  // From now on turns are started, where it was opened without that.
  play(): void {
    this.#plays = true;
    this.#wake();
  }

  // Nothing is taken that nobody would play any more. What was taken before counts: its turn begins before the end
  // does.
  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#stopping) throw new RequestError('SHUTTING_DOWN', 'this Parley is being stopped');
    try {
      return await track(this.#changes, work());
    } finally {
      this.#wake();
    }
  }

  // `roots`: where the caller may let runs work; null: anywhere.
  async create(request: CreateRunRequest, actor?: Actor, roots: readonly string[] | null = null): Promise<RunRecord> {
    return this.#change(() => createRun(this.#deps, request, { actor, roots }));
  }

  async reply(runId: string, given: Reply, actor: Actor | null = null): Promise<RunRecord> {
    return this.#change(() => reply(this.#deps, runId, given, actor));
  }

  // A new run on the session of an ended one.
  async continueFrom(runId: string, request: ContinueRequest, actor?: Actor): Promise<RunRecord> {
    return this.#change(() => continueRun(this.#deps, runId, request, actor));
  }

  // A new run that begins with a copy of the conversation; the source stays as it is.
  async fork(runId: string, request: ContinueRequest, actor?: Actor): Promise<RunRecord> {
    return this.#change(() => forkRun(this.#deps, runId, request, actor));
  }

  async retry(runId: string, request: RetryRequest = {}, actor?: Actor): Promise<RunRecord> {
    return this.#change(() => retryRun(this.#deps, runId, request, actor));
  }

  // Resolves when the run is canceled and nothing of its engine is left. Taken as long as turns are at work.
  async cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    if (this.#closed) throw new RequestError('SHUTTING_DOWN', 'this Parley is being stopped');
    return track(this.#endings, this.#cancel(runId, actor));
  }

  async #cancel(runId: string, actor?: Actor): Promise<RunRecord> {
    for (;;) {
      // Nothing of it may print any more when its last event is stored.
      const { status } = await loadRun(this.#deps.store, runId);
      if (status === 'waiting_user' || status === 'queued') {
        if (await this.#cluster?.cancelHeld(runId, actor, this.#wakeups)) continue;
        await this.#endResident(runId, status);
      }
      const idle = await cancelIdle(this.#deps, runId, actor);
      if (idle) return idle;
      const turn = this.#controls.get(runId);
      if (turn) {
        await rememberCancel(this.#deps, runId, actor);
        turn.control.cancel(actor);
        await turn.over;
      }
      const run = await loadRun(this.#deps.store, runId);
      if (run.status === 'canceled') return run;
      if (isTerminal(run.status))
        throw new RequestError('RUN_ENDED', `run ${runId} has ${run.status} before it could be canceled`);
      if (run.status !== 'running' || this.#controls.has(runId)) continue;
      // Another host plays it, or one that is gone did; else nobody: its turn was lost.
      if (this.#cluster) await this.#cluster.cancelElsewhere(run, actor, this.#wakeups);
      else await endFromLogs(this.#deps, run, { event: 'run.canceled', actor });
    }
  }

  // An ended run, with its files.
  delete(runId: string, by?: DeletedBy): Promise<void> {
    const isPlayed = this.#controls.has(runId) || this.#residents.has(runId);
    return this.#change(() => deleteRun(this.#deps, runId, { isPlayed, by, onFailure: this.#settings.onFailure }));
  }

  // Deletes what the rules say, after the look at what the last one left.
  async sweep(rules: RetentionRules): Promise<string[]> {
    await this.#recovering;
    return sweep(this.#deps, rules, () => this.#closing.signal.aborted, this.#settings.onFailure);
  }

  // For whoever watches a run.
  get wakeups(): Wakeups {
    return this.#wakeups;
  }

  // Writes the files beside the journal of a run anew, if they were removed.
  restoreFiles(runId: string): Promise<void> {
    return this.#closed ? Promise.resolve() : this.#files.restore(runId);
  }

  // Resolves when everything that the last one left behind has been looked at. Runs can be created and answered before.
  recovered(): Promise<void> {
    return this.#recovering;
  }

  async #lookAfter(): Promise<void> {
    const stopped = () => this.#closing.signal.aborted;
    // With others there is no start: whoever waits is answered by any of them.
    const waiting = this.#cluster
      ? async () => {}
      : () => recoverWaitingRuns(this.#deps, stopped, this.#settings.onFailure);
    for (const work of [waiting, () => this.#files.repair(stopped)]) {
      await work().catch((error: unknown) => this.#settings.onFailure('', error));
    }
  }

  // Resolves when the run has no turn under way.
  async settled(runId: string): Promise<RunRecord> {
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

  // Resolves when nothing is queued and no turn is under way: a program that has nothing else to do may end.
  async quiet(): Promise<void> {
    for (;;) {
      await this.#dispatch.idle();
      const turns = [...this.#controls.values()].map(({ over }) => over);
      if (turns.length > 0) await Promise.race(turns);
      else if ((await this.#deps.store.claimQueued(1, [])).length === 0) return;
      else await new Promise((resolve) => this.#deps.timers.set(QUIET_MS, () => resolve(null)));
    }
  }

  // Running turns may finish within the grace period and are then ended; nothing new begins, waiting runs are
  // untouched.
  async close({ graceMs = 0, hurry, onDrain }: CloseOptions = {}): Promise<Interrupted> {
    this.#stopping = true;
    if (this.#changes.size > 0) {
      await Promise.all(this.#changes);
      await this.#dispatch.idle();
    }
    const closed = this.#dispatch.close();
    // Others go on with what waits, as soon as nothing of it waits here.
    if (this.#cluster) await this.#residents.close();
    if (graceMs > 0 && this.#controls.size > 0) {
      onDrain?.(this.#controls.size);
      const turns = Promise.all([...this.#controls.values()].map(({ over }) => over));
      await waitAtMost(this.#deps.timers, graceMs, Promise.race([turns, ...(hurry ? [hurry] : [])]));
    }
    // Before the turns end: an interrupted run may queue its retry. Queued runs that hosts share are started by the
    // others.
    const queued = this.#cluster
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
    await this.#cluster?.close();
    await this.#residents.close();
    await this.#recovering;
    this.#closed = true;
    // With others, the files are written from what is stored, by whoever comes to it.
    if (!this.#cluster) await Promise.all(this.#endings);
    await this.#files.close();
    this.#wakeups.close();
    return { turns, queued };
  }

  // After a crash of this process: starts nothing more, stores buffered events and ends the engines. Runs stay as they
  // are stored.
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
    const played = runTurn(this.#deps, run, control, this.#residents)
      .then(
        () => {},
        (error: unknown) => (control.isLost ? undefined : this.#afterFailure(run.run_id, error)),
      )
      .finally(() => this.#controls.delete(run.run_id));
    this.#controls.set(run.run_id, { control, over: played.catch(() => {}) });
    if (this.#closing.signal.aborted) control.shutdown();
    return played;
  }

  // Of one that waits, once its turn is over: only then its process is known.
  async #endResident(runId: string, status: 'waiting_user' | 'queued'): Promise<void> {
    if (status === 'waiting_user') await this.#controls.get(runId)?.over;
    await this.#residents.end(runId);
  }

  // The time of a question is over. Where its process is all there is, and only a person may answer, it is over with
  // it.
  async #decide(interaction: InteractionRecord): Promise<boolean> {
    const run = await this.#deps.store.loadRun(interaction.run_id);
    if (!run?.spec.sticky || !parseRuntimeOptions(run.spec.runtime_options).interactive_require_user_reply)
      return (await decide(this.#deps, interaction)) !== null;
    // The host that has it ends it, and finds that its time is over.
    if (await this.#deps.cluster?.isHeldElsewhere(run.run_id)) return false;
    await this.#endResident(run.run_id, 'waiting_user');
    return failWaiting(this.#deps, run.run_id, interaction.interaction_id, WAITED_TOO_LONG);
  }

  async #loseProcess(runId: string): Promise<void> {
    try {
      await this.#controls.get(runId)?.over;
      const pending = await this.#deps.store.loadPending(runId);
      if (pending) await failWaiting(this.#deps, runId, pending.interaction_id, PROCESS_LOST);
    } catch (error) {
      this.#settings.onFailure(runId, error);
    }
  }

  // For who wants to know what runs that wait cost.
  get residents(): number {
    return this.#residents.count;
  }

  // The run must not stay as it is: it is failed as soon as that can be stored, or at the next start.
  async #afterFailure(runId: string, error: unknown): Promise<void> {
    this.#settings.onFailure(runId, error instanceof NotBegunError ? error.cause : error);
    // It belongs to somebody else by now.
    if (error instanceof LostRunError) return;
    // It is still queued and may begin later.
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
