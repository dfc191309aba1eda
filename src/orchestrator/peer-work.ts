// The work of a host that shares the store with others: it recovers runs of dead hosts, carries out cancel requests of
// other hosts for the runs that it runs, and ends all its turns when it loses its lease. On a single host there is
// nothing to do, and nothing polls.
import { Alarm, pause } from '../process/timers.js';
import { refusal } from '../run/request-error.js';
import type { Actor, Committed, RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { OnFailure } from '../kernel/log.js';
import type { JournalFiles } from '../journal/journal-files.js';
import { Leftovers } from '../recovery/leftovers.js';
import { cancelOrphan, recoverOrphans, type RecoverySettings, type RecoveryWork } from '../recovery/recover.js';
import type { Residents } from '../turn/residents/residents.js';
import type { TurnControl } from '../turn/turn-control.js';
import type { Wakeups } from '../journal/wakeups.js';

const RETRY_MS = 500;
// How long a caller waits for another host without a notification, if this host does not poll.
const WAIT_MS = 1000;
// Limits for one poll.
const MOST_FILES = 50;
const MOST_REQUESTS = 20;

type Controls = ReadonlyMap<string, { readonly control: TurnControl; readonly over: Promise<void> }>;

export interface PeerWorkOptions {
  readonly deps: OrchestratorDeps;
  readonly recovery: RecoverySettings;
  readonly controls: Controls;
  readonly residents: Residents;
  readonly journalFiles: JournalFiles;
  readonly cancel: (runId: string, actor: Actor | undefined) => Promise<unknown>;
  readonly onFailure: OnFailure;
}

export class PeerWork {
  readonly #options: PeerWorkOptions;
  readonly #deps: OrchestratorDeps;
  readonly #closing = new AbortController();
  readonly #alarm: Alarm;
  readonly #stopListening: readonly (() => void)[];
  // Work that must finish before the store is closed.
  readonly #works = new Set<Promise<void>>();
  // The latest recovery of an orphan, for each run.
  readonly #ending = new Map<string, Promise<void>>();
  readonly #leftovers: Leftovers;
  readonly #recovering = new Set<string>();
  // Cancel requests for orphans, until they are carried out.
  readonly #cancels = new Map<string, Actor | undefined>();
  #isWriting = false;

  constructor(options: PeerWorkOptions) {
    const { deps, onFailure } = options;
    this.#options = options;
    this.#deps = deps;
    this.#leftovers = new Leftovers(deps, this.#closing.signal, onFailure);
    this.#alarm = new Alarm(deps.timers);
    deps.ownership.onLost(() => this.#loseAll());
    this.#stopListening = [
      deps.store.onCommitted((commit) => this.#notice(commit)),
      deps.store.onMissed(() => this.#work('', () => this.#checkAll())),
    ];
  }

  // What recovery needs to know about this host.
  get recovery(): RecoveryWork {
    const { deps, recovery: settings, controls, journalFiles, onFailure } = this.#options;
    return {
      deps,
      settings,
      journalFiles,
      isRunHere: (runId) => controls.has(runId),
      recovering: this.#recovering,
      cancels: this.#cancels,
      exclusively: (runId, work) => this.#exclusively(runId, work),
      signal: this.#closing.signal,
      onFailure,
    };
  }

  // Whether the run was interrupted and this process has still to end it.
  isRecovering(runId: string): boolean {
    return this.#recovering.has(runId);
  }

  async #exclusively<T>(runId: string, work: () => Promise<T>): Promise<T> {
    const own = (this.#ending.get(runId) ?? Promise.resolve()).then(work);
    const over = own.then(
      () => {},
      () => {},
    );
    this.#ending.set(runId, over);
    try {
      return await own;
    } finally {
      if (this.#ending.get(runId) === over) this.#ending.delete(runId);
    }
  }

  // Starts polling if there are other hosts. The first poll is immediate, because another host may have been dead for
  // long.
  start(): void {
    const { ownership, peers } = this.#deps;
    const { pollMs } = ownership;
    if (pollMs === null) return;
    this.#work('', async () => {
      try {
        // Notifications may be lost, so each poll reads the requests of other hosts.
        await this.#checkAll();
        await recoverOrphans(this.recovery);
        for (const runId of await peers.listCancelRequests(MOST_REQUESTS))
          this.#work(runId, () => this.#cancelRequested(runId));
        this.#work('', () => this.#leftovers.remove());
        if (!this.#isWriting) this.#work('', () => this.#writeFiles());
      } finally {
        if (!this.#closing.signal.aborted) this.#alarm.set(pollMs, () => this.start());
      }
    });
  }

  // Completes journal files of dead hosts. It may take long, and no other work waits for it.
  async #writeFiles(): Promise<void> {
    this.#isWriting = true;
    try {
      for (const runId of await this.#deps.files.listUnexported(MOST_FILES))
        if (!this.#closing.signal.aborted) await this.#options.journalFiles.write(runId);
    } finally {
      this.#isWriting = false;
    }
  }

  // The host that should have canceled this queued or waiting run is dead.
  async #cancelRequested(runId: string): Promise<void> {
    const run = await this.#deps.store.loadRun(runId);
    if (run?.cancel_requested && (run.status === 'waiting_user' || run.status === 'queued'))
      await this.#options.cancel(runId, run.cancel_requested.actor ?? undefined);
  }

  #work(runId: string, work: () => Promise<void>): void {
    if (this.#closing.signal.aborted) return;
    const over = work()
      .catch((error: unknown) => this.#options.onFailure(runId, error))
      .finally(() => this.#works.delete(over));
    this.#works.add(over);
  }

  #notice({ run_id: runId, origin, deleted, status }: Committed): void {
    const { controls, residents } = this.#options;
    // Readers of the same commit must not see an ended run as recovering.
    if (deleted || (status !== undefined && status !== 'running')) this.#recovering.delete(runId);
    if (deleted) return this.#work(runId, () => this.#leftovers.remove());
    if (origin === 'elsewhere' && (controls.has(runId) || residents.has(runId)))
      this.#work(runId, () => this.#check(runId));
  }

  // Carries out requests of other hosts for a run that runs here or whose process waits here.
  async #check(runId: string): Promise<void> {
    const { controls, residents, cancel } = this.#options;
    const before = { turn: controls.get(runId), idleResident: residents.idleResidentOf(runId) };
    const run = await this.#deps.store.loadRun(runId);
    const turn = controls.get(runId);
    const request = run?.cancel_requested;
    if (turn) return request ? turn.control.cancel(request) : undefined;
    const isAtRest = run?.status === 'waiting_user' || run?.status === 'queued';
    // Ending its process takes a while; other runs are checked in the meantime.
    if (isAtRest && request) this.#work(runId, async () => void (await cancel(runId, request.actor ?? undefined)));
    // The run continued elsewhere or has ended, so the process that waits here will get no answer. Skips a process that
    // started waiting after this check began.
    else if (!isAtRest && before.turn === undefined && before.idleResident === residents.idleResidentOf(runId))
      await residents.end(runId);
  }

  async #checkAll(): Promise<void> {
    const { controls, residents } = this.#options;
    for (const runId of new Set([...controls.keys(), ...residents.kept()])) await this.#check(runId);
  }

  async #loseAll(): Promise<void> {
    const turns = [...this.#options.controls.values()];
    for (const { control } of turns) control.lose();
    await Promise.all([...turns.map(({ over }) => over), this.#options.residents.close()]);
  }

  // The process that waited for the run has exited: any host may continue the run.
  release(runId: string): void {
    const { controls, residents } = this.#options;
    this.#work(runId, async () => {
      // If the run continues here in the meantime, it may have another process.
      while (!this.#closing.signal.aborted && !controls.has(runId) && !residents.has(runId)) {
        try {
          return await this.#deps.peers.release(runId);
        } catch {
          await pause(this.#deps.timers, RETRY_MS, this.#closing.signal);
        }
      }
    });
  }

  // Cancels a running run of another host: that host ends it, or this one does if that host is dead. Resolves when the
  // run has changed.
  async cancelElsewhere({ run_id: runId }: RunRecord, actor: Actor | undefined, wakeups: Wakeups): Promise<void> {
    const watch = wakeups.watch(runId);
    try {
      await this.#requestCancel(runId, actor);
      const { version } = watch;
      const run = await this.#deps.store.loadRun(runId);
      if (run?.status !== 'running') return;
      if (await cancelOrphan(this.recovery, runId, actor)) return;
      await this.#changed(watch, version);
    } finally {
      watch.close();
    }
  }

  // Cancels a run that waits with its process on another host: that host ends the process and then the run, so that
  // nothing is printed after its end. Resolves to false if there is no such process, otherwise to true when the run has
  // changed or the wait has timed out.
  async cancelHeld(runId: string, actor: Actor | undefined, wakeups: Wakeups): Promise<boolean> {
    const watch = wakeups.watch(runId);
    try {
      const { version } = watch;
      if (!(await this.#deps.peers.isHeldElsewhere(runId))) return false;
      await this.#requestCancel(runId, actor);
      await this.#changed(watch, version);
      return true;
    } finally {
      watch.close();
    }
  }

  // The owner of the run appends the event; until then the request is a row.
  #requestCancel(runId: string, actor: Actor | undefined): Promise<void> {
    return this.#deps.peers.requestCancel(runId, { at: this.#deps.clock.now(), actor: actor ?? null });
  }

  // Also resolves after a timeout without a change, so that the caller reads the run again.
  async #changed(watch: ReturnType<Wakeups['watch']>, version: number): Promise<void> {
    if (this.#closing.signal.aborted) throw refusal('SHUTTING_DOWN.cancel_stored');
    const waited = new AbortController();
    const ms = this.#deps.ownership.pollMs ?? WAIT_MS;
    await Promise.race([watch.changed(version), pause(this.#deps.timers, ms, waited.signal)]).finally(() =>
      waited.abort(),
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm.clear();
    for (const stop of this.#stopListening) stop();
    await Promise.all(this.#works);
    this.#alarm.clear();
  }
}
