// What a host does because there are others: it looks after runs whose host is gone, hears what others want of the turns that it plays, and
// ends all of them when its lease is over.
import { Alarm, pause } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import type { Cluster } from '../dispatch/cluster.js';
import type { Actor, Committed, RunRecord } from '../store/store.js';
import { rememberCancel } from './cancel.js';
import type { OrchestratorDeps } from './deps.js';
import { endFromLogs } from './end-from-logs.js';
import type { JournalFiles } from './journal-files.js';
import { reconcile, takeOver } from './reconcile.js';
import { removeFolder } from './remove-folder.js';
import type { Residents } from './residents.js';
import { runFolder } from './run-folder.js';
import type { TurnControl } from './turn-control.js';
import type { Wakeups } from './wakeups.js';
import { NO_FACTS } from '../run/guards.js';
import { applyRunEvent } from './apply-run-event.js';

const RETRY_MS = 500;
// At a look.
const MOST_FILES = 50;

type Controls = ReadonlyMap<string, { readonly control: TurnControl; readonly over: Promise<void> }>;

export class ClusterWork {
  readonly #deps: OrchestratorDeps;
  readonly #cluster: Cluster;
  readonly #controls: Controls;
  readonly #residents: Residents;
  readonly #files: JournalFiles;
  readonly #onFailure: (runId: string, error: unknown) => void;
  readonly #closing = new AbortController();
  readonly #alarm: Alarm;
  readonly #stopListening: readonly (() => void)[];
  // What was begun and has to end before the store is closed.
  readonly #works = new Set<Promise<void>>();
  // Runs that were taken over to be canceled.
  readonly #ending = new Set<string>();

  constructor(deps: OrchestratorDeps, controls: Controls, residents: Residents, files: JournalFiles, onFailure: (runId: string, error: unknown) => void) {
    const { cluster, store } = deps;
    if (!cluster) throw new Error('there are no other hosts');
    this.#deps = deps;
    this.#cluster = cluster;
    this.#controls = controls;
    this.#residents = residents;
    this.#files = files;
    this.#onFailure = onFailure;
    this.#alarm = new Alarm(deps.timers);
    cluster.onLost(() => this.#loseAll());
    this.#stopListening = [
      store.onCommitted((told) => this.#hear(told)),
      store.onMissed(() => this.#work('', () => this.#lookAtAll())),
    ];
  }

  // The first look is now: somebody may have been gone for long.
  begin(): void {
    this.#work('', async () => {
      try {
        // Hints may be lost: what others want is looked at, too.
        await this.#lookAtAll();
        await reconcile(this.#deps, (runId) => this.#controls.has(runId) || this.#ending.has(runId), () => this.#closing.signal.aborted, this.#onFailure);
        // What a host that went had no time to write beside.
        for (const runId of await this.#cluster.listUnexported(MOST_FILES)) if (!this.#closing.signal.aborted) await this.#files.write(runId);
      } finally {
        // Whatever became of it, there is another look.
        if (!this.#closing.signal.aborted) this.#alarm.set(this.#cluster.reconcileMs, () => this.begin());
      }
    });
  }

  #work(runId: string, work: () => Promise<void>): void {
    if (this.#closing.signal.aborted) return;
    const over = work().catch((error: unknown) => this.#onFailure(runId, error)).finally(() => this.#works.delete(over));
    this.#works.add(over);
  }

  #hear({ run_id: runId, origin, status, deleted }: Committed): void {
    if (origin === 'here') return;
    if (deleted) return this.#work(runId, () => this.#forget(runId));
    if (this.#controls.has(runId)) return this.#work(runId, () => this.#lookAt(runId));
    // It went on elsewhere, or has ended: nobody will answer the process that waits here.
    if (status !== undefined && status !== 'waiting_user' && status !== 'queued' && this.#residents.has(runId)) this.#work(runId, () => this.#residents.end(runId));
  }

  // The wish to cancel a turn that is played here.
  async #lookAt(runId: string): Promise<void> {
    const run = await this.#deps.store.loadRun(runId);
    if (run?.cancel_requested) this.#controls.get(runId)?.control.cancel(run.cancel_requested.actor ?? undefined);
  }

  async #lookAtAll(): Promise<void> {
    for (const runId of this.#controls.keys()) await this.#lookAt(runId);
    for (const runId of this.#residents.kept()) {
      const run = await this.#deps.store.loadRun(runId);
      if (run?.status !== 'waiting_user' && run?.status !== 'queued' && !this.#controls.has(runId)) await this.#residents.end(runId);
    }
  }

  // A hint is not believed: only if its rows are gone do its files go. Files that all share went with them.
  async #forget(runId: string): Promise<void> {
    if (this.#cluster.files === 'local' && !(await this.#deps.store.loadRun(runId))) removeFolder(runFolder(this.#deps.dataDir, runId).path);
  }

  async #loseAll(): Promise<void> {
    const turns = [...this.#controls.values()];
    for (const { control } of turns) control.lose();
    await Promise.all([...turns.map(({ over }) => over), this.#residents.close()]);
  }

  // The process that waited for the run is gone: any host may go on with it.
  letGo(runId: string): void {
    this.#work(runId, async () => {
      while (!this.#closing.signal.aborted) {
        try {
          return await this.#cluster.letGo(runId);
        } catch {
          await pause(this.#deps.timers, RETRY_MS, this.#closing.signal);
        }
      }
    });
  }

  // A run that is not played here: whoever plays it ends it; if that one is gone, it is ended here. Answers when something has changed.
  async cancelElsewhere(run: RunRecord, actor: Actor | undefined, wakeups: Wakeups): Promise<void> {
    const { run_id: runId } = run;
    const watch = wakeups.watch(runId);
    try {
      await rememberCancel(this.#deps, runId, actor);
      const { version } = watch;
      const found = await this.#deps.store.loadRun(runId);
      if (found?.status !== 'running') return;
      this.#ending.add(runId);
      const taken = await takeOver(this.#deps, runId, this.#onFailure);
      if (taken) return await this.#endCanceled(taken, actor);
      if (this.#closing.signal.aborted) throw new RequestError('SHUTTING_DOWN', 'this Parley is being stopped; the wish to cancel the run is stored');
      const waited = new AbortController();
      await Promise.race([watch.changed(version), pause(this.#deps.timers, this.#cluster.reconcileMs, waited.signal)]).finally(() => waited.abort());
    } finally {
      this.#ending.delete(runId);
      watch.close();
    }
  }

  async #endCanceled(taken: RunRecord, actor: Actor | undefined): Promise<void> {
    if (await this.#cluster.hasFiles(taken.run_id)) await endFromLogs(this.#deps, taken, { event: 'run.canceled', actor });
    else await applyRunEvent(this.#deps, taken, { event: 'run.canceled', facts: NO_FACTS, actor });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm.clear();
    for (const stop of this.#stopListening) stop();
    await Promise.all(this.#works);
    this.#alarm.clear();
  }
}
