// The port: the other hosts that share the store. A host plays runs only while it has a lease; what a host without one
// was at is taken over by another.
import type { RunRecord } from '../store/store.js';
import type { Dispatch, DispatchHandlers } from './dispatch.js';

// A host that has the files of a run, and the key that verifies its proofs.
export interface FilesPlace {
  readonly host_id: string;
  readonly url: string;
  readonly public_key: string;
}

export interface Cluster {
  // Whether the files of runs are the same for all hosts, or each host has those of the runs it plays.
  readonly files: 'own' | 'local';
  // Between looks at what dead hosts have left.
  readonly reconcileMs: number;
  // How the runs of this host are started, and questions decided by one host of all.
  createDispatch(handlers: DispatchHandlers, slots: number): Dispatch;
  // Told when the lease is over: nothing that was begun under it may work on. Only when that is so is another lease
  // asked for.
  onLost(listener: () => Promise<void>): void;
  // Running runs that nobody plays who is alive.
  listAbandoned(limit: number): Promise<string[]>;
  // Runs that wait, that somebody wants to have canceled, and that no living host has a process for.
  listWished(limit: number): Promise<string[]>;
  // Running runs that belong to this host, whoever plays them.
  listOwned(limit: number): Promise<string[]>;
  // The lease holds at this very moment, as far as this host can know: asked before anything is begun that others could
  // not take back.
  mayPlay(): boolean;
  // The run is this host's from then on; null: it was not abandoned.
  takeOver(run: RunRecord): Promise<RunRecord | null>;
  // Somebody who is alive plays it, or has a process that waits with it.
  isPlayed(runId: string): Promise<boolean>;
  // The files of the run can be read here.
  hasFiles(runId: string): Promise<boolean>;
  // Where its files can be had, if another host that is alive has them.
  whereFiles(runId: string): Promise<FilesPlace | null>;
  // Whether another host that is alive and plays runs has the program of the engine, or does not say.
  hasEngine(engine: string): Promise<boolean>;
  // A process of the run waits on another host that is alive.
  isHeldElsewhere(runId: string): Promise<boolean>;
  // A process of the run waits here, so that it must go on here; and not any more.
  hold(runId: string): Promise<void>;
  letGo(runId: string): Promise<void>;
  // Runs at rest whose files beside the journal are short, as far as this host can write them; and that they are whole
  // up to a seq.
  listUnexported(limit: number): Promise<string[]>;
  markExported(runId: string, seq: number): Promise<void>;
  // Queued runs whose files, or whose paths if there are none yet, are where no host has been for too long.
  listStranded(limit: number): Promise<{ readonly run_id: string; readonly hasSite: boolean }[]>;
  // Deleted runs whose files this host can remove; and that they are removed.
  listLeftovers(except: readonly string[], limit: number): Promise<string[]>;
  forgetLeftover(runId: string): Promise<void>;
}
