// What a host does because there are others: it looks after runs whose host is gone, hears what others want of the
// turns that it plays, and ends all of them when its lease is over.
import { Alarm, pause } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import type { Cluster } from '../dispatch/cluster.js';
import type { Actor, Committed, RunRecord } from '../store/store.js';
import { rememberCancel } from '../commands/cancel.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { endFromLogs } from '../turn/end-from-logs.js';
import { endWithoutLogs } from '../recovery/end-without-logs.js';
import type { JournalFiles } from '../journal/journal-files.js';
import { Leftovers } from '../recovery/leftovers.js';
import { reconcile, takeOver } from '../recovery/reconcile.js';
import type { Residents } from '../turn/residents.js';
import type { TurnControl } from '../turn/turn-control.js';
import type { Wakeups } from '../journal/wakeups.js';

const RETRY_MS = 500;
// At a look.
const MOST_FILES = 50;
const MOST_WISHES = 20;

type Cancel = (runId: string, actor: Actor | undefined) => Promise<unknown>;
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
  readonly #leftovers: Leftovers;
  #isWriting = false;
  readonly #cancel: Cancel;

  constructor(
    deps: OrchestratorDeps,
    controls: Controls,
    residents: Residents,
    files: JournalFiles,
    cancel: Cancel,
    onFailure: (runId: string, error: unknown) => void,
  ) {
    const { cluster, store } = deps;
    if (!cluster) throw new Error('there are no other hosts');
    this.#deps = deps;
    this.#cluster = cluster;
    this.#controls = controls;
    this.#residents = residents;
    this.#files = files;
    this.#cancel = cancel;
    this.#onFailure = onFailure;
    this.#leftovers = new Leftovers(deps, cluster, () => this.#closing.signal.aborted, onFailure);
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
        await reconcile(
          this.#deps,
          (runId) => this.#controls.has(runId) || this.#ending.has(runId),
          () => this.#closing.signal.aborted,
          this.#onFailure,
        );
        for (const runId of await this.#cluster.listWished(MOST_WISHES))
          this.#work(runId, () => this.#lookAfterWish(runId));
        this.#work('', () => this.#leftovers.remove());
        if (!this.#isWriting) this.#work('', () => this.#writeFiles());
      } finally {
        // Whatever became of it, there is another look.
        if (!this.#closing.signal.aborted) this.#alarm.set(this.#cluster.reconcileMs, () => this.begin());
      }
    });
  }

  // What a host that went had no time to write beside. It may take long, and nothing waits for it.
  async #writeFiles(): Promise<void> {
    this.#isWriting = true;
    try {
      for (const runId of await this.#cluster.listUnexported(MOST_FILES))
        if (!this.#closing.signal.aborted) await this.#files.write(runId);
    } finally {
      this.#isWriting = false;
    }
  }

  // Of a run that waits: whoever wanted it canceled is gone, and so is the host that was to do it.
  async #lookAfterWish(runId: string): Promise<void> {
    const run = await this.#deps.store.loadRun(runId);
    if (run?.cancel_requested && (run.status === 'waiting_user' || run.status === 'queued'))
      await this.#cancel(runId, run.cancel_requested.actor ?? undefined);
  }

  #work(runId: string, work: () => Promise<void>): void {
    if (this.#closing.signal.aborted) return;
    const over = work()
      .catch((error: unknown) => this.#onFailure(runId, error))
      .finally(() => this.#works.delete(over));
    this.#works.add(over);
  }

  #hear({ run_id: runId, origin, deleted }: Committed): void {
    if (deleted) return this.#work(runId, () => this.#leftovers.remove());
    if (origin === 'elsewhere' && (this.#controls.has(runId) || this.#residents.has(runId)))
      this.#work(runId, () => this.#lookAt(runId));
  }

  // What others want of a run that is played, or waits with its process, here.
  async #lookAt(runId: string): Promise<void> {
    const before = { turn: this.#controls.get(runId), waiter: this.#residents.waiterOf(runId) };
    const run = await this.#deps.store.loadRun(runId);
    const turn = this.#controls.get(runId);
    const wish = run?.cancel_requested;
    if (turn) return wish ? turn.control.cancel(wish.actor ?? undefined) : undefined;
    const isWaiting = run?.status === 'waiting_user' || run?.status === 'queued';
    // To end its process takes a while; others are looked at meanwhile.
    if (isWaiting && wish) this.#work(runId, async () => void (await this.#cancel(runId, wish.actor ?? undefined)));
    // It went on elsewhere, or has ended: nobody will answer the process that waits here. One that began to wait since
    // the look is another matter.
    else if (!isWaiting && before.turn === undefined && before.waiter === this.#residents.waiterOf(runId))
      await this.#residents.end(runId);
  }

  async #lookAtAll(): Promise<void> {
    for (const runId of new Set([...this.#controls.keys(), ...this.#residents.kept()])) await this.#lookAt(runId);
  }

  async #loseAll(): Promise<void> {
    const turns = [...this.#controls.values()];
    for (const { control } of turns) control.lose();
    await Promise.all([...turns.map(({ over }) => over), this.#residents.close()]);
  }

  // The process that waited for the run is gone: any host may go on with it.
  letGo(runId: string): void {
    this.#work(runId, async () => {
      // If it goes on here meanwhile, there may be another process.
      while (!this.#closing.signal.aborted && !this.#controls.has(runId) && !this.#residents.has(runId)) {
        try {
          return await this.#cluster.letGo(runId);
        } catch {
          await pause(this.#deps.timers, RETRY_MS, this.#closing.signal);
        }
      }
    });
  }

  // A run that is not played here: whoever plays it ends it; if that one is gone, it is ended here. Answers when
  // something has changed.
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
      await this.#changed(watch, version);
    } finally {
      this.#ending.delete(runId);
      watch.close();
    }
  }

  // A run that waits with its process on another host: that one ends the process, then the run, so that nothing is
  // printed after its end. False: there is no such process. Answers when something has changed.
  async cancelHeld(runId: string, actor: Actor | undefined, wakeups: Wakeups): Promise<boolean> {
    const watch = wakeups.watch(runId);
    try {
      const { version } = watch;
      if (!(await this.#cluster.isHeldElsewhere(runId))) return false;
      await rememberCancel(this.#deps, runId, actor);
      await this.#changed(watch, version);
      return true;
    } finally {
      watch.close();
    }
  }

  // Or nothing was heard of it for a while.
  async #changed(watch: ReturnType<Wakeups['watch']>, version: number): Promise<void> {
    if (this.#closing.signal.aborted)
      throw new RequestError('SHUTTING_DOWN', 'this Parley is being stopped; the wish to cancel the run is stored');
    const waited = new AbortController();
    await Promise.race([
      watch.changed(version),
      pause(this.#deps.timers, this.#cluster.reconcileMs, waited.signal),
    ]).finally(() => waited.abort());
  }

  async #endCanceled(taken: RunRecord, actor: Actor | undefined): Promise<void> {
    if (await this.#cluster.hasFiles(taken.run_id))
      await endFromLogs(this.#deps, taken, { event: 'run.canceled', actor });
    else await endWithoutLogs(this.#deps, taken, { event: 'run.canceled', actor });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm.clear();
    for (const stop of this.#stopListening) stop();
    await Promise.all(this.#works);
    this.#alarm.clear();
  }
}
