// The ports for everything that depends on whether hosts share the store: which runs this host may work on (Ownership),
// requests to other hosts (Peers), and where the files of runs are (RunFiles). single-host.ts implements them for one
// host.
import type { CancelRequest, RunRecord } from '../store/store.js';

// The states in which a stopped host can leave a run.
export type OrphanState = 'queued' | 'running' | 'waiting_user';

export interface Ownership {
  // Whether other hosts share the store. They continue runs that this host leaves.
  readonly hasPeers: boolean;
  // The interval between two searches for orphans; null: they are searched only at the start.
  readonly pollMs: number | null;
  // Whether this host may work on its runs, by the local clock. Check it before any side effect that another host could
  // not undo.
  mayRun(): boolean;
  // The listener is called when this host has lost its lease, and must end all work of this host. The host requests a
  // new lease only after that.
  onLost(listener: () => Promise<void>): void;
  // Whether a queued run could be started here. Reserves nothing.
  peek(): Promise<boolean>;
  // Reserves queued runs for this host for a short time, oldest first.
  claim(limit: number, except: readonly string[]): Promise<string[]>;
  // Runs whose host stopped, crashed or lost its lease, and runs of this host that have no turn.
  listOrphans(state: OrphanState): Promise<string[]>;
  // Makes this host the owner of a running orphan. Resolves to null if the run is no longer an orphan.
  takeOver(run: RunRecord): Promise<RunRecord | null>;
  // Whether another live host runs a turn of the run, or has a waiting process of it.
  isRunElsewhere(runId: string): Promise<boolean>;
}

export interface Peers {
  // Stores a cancel request for the host that runs the run or has its process.
  requestCancel(runId: string, request: CancelRequest): Promise<void>;
  // Queued and waiting runs that have a cancel request, and no process on a live host.
  listCancelRequests(limit: number): Promise<string[]>;
  // Binds the run to this host while a process of it waits here. release() ends that.
  hold(runId: string): Promise<void>;
  release(runId: string): Promise<void>;
  // Whether a process of the run waits on another live host.
  isHeldElsewhere(runId: string): Promise<boolean>;
  // Whether another live host that runs turns has the engine installed, or does not publish its engines.
  hasEngine(engine: string): Promise<boolean>;
}

// A host that has the files of a run, and the public key that verifies its signatures.
interface FilesPlace {
  readonly host_id: string;
  readonly url: string;
  readonly public_key: string;
}

// single: there is one host. shared: all hosts have the same files. local: each host has the files of its own runs.
export type FileLayout = 'single' | 'shared' | 'local';

export interface RunFiles {
  readonly layout: FileLayout;
  // Whether the files of the run can be read here.
  isHere(runId: string): Promise<boolean>;
  // The other live host that has the files of the run; null: none.
  whereIs(runId: string): Promise<FilesPlace | null>;
  // Queued, waiting and ended runs whose journal files are incomplete and can be written here. markExported records
  // that they are complete up to a seq.
  listUnexported(limit: number): Promise<string[]>;
  markExported(runId: string, seq: number): Promise<void>;
  // Queued runs whose files or folders are on hosts that have been offline for too long.
  listStranded(limit: number): Promise<{ readonly run_id: string; readonly hasSite: boolean }[]>;
  // Deleted runs whose files can be removed here. forgetLeftover records that they are removed.
  listLeftovers(except: readonly string[], limit: number): Promise<string[]>;
  forgetLeftover(runId: string): Promise<void>;
}

export interface HostPorts {
  readonly ownership: Ownership;
  readonly peers: Peers;
  readonly files: RunFiles;
}
