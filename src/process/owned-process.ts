// Owns one process from its start until nothing of it is left: appends its output to the logs, hands the bytes on, ends
// the process tree and drains the pipes. Two callers use it: a process for one turn (child.ts) and a server that serves
// several turns (src/app-server/server-process.ts).
//
// States: `running` → (end, or an error of ours) → `ending` → (exit) → `exited`; then the tree is ended, the pipes are
// drained, the logs are closed, and `done` resolves. A process that exits by itself goes from `running` to `exited`.
import type { StreamName } from '../rasp/event.js';
import type { Exit } from '../run/judge-completion.js';
import { closeLogs, type AppendLog } from './append-log.js';
import { drain } from './drain.js';
import { endTree, type TreeEnd } from './end-tree.js';
import type { IdleWatch } from './idle-watch.js';
import { readStartTime, readTable } from './process-table.js';
import { ProcessTree } from './process-tree.js';
import { pump } from './pump.js';
import type { SpawnedProcess } from './spawn.js';
import type { Timers } from './timers.js';

export interface OwnedProcessOptions {
  readonly child: SpawnedProcess;
  // PARLEY_TURN of the process and of everything it starts.
  readonly mark: string;
  // The owner closes them.
  readonly logs: Readonly<Record<StreamName, AppendLog>>;
  readonly timers: Timers;
  readonly idle: IdleWatch;
  // Between SIGTERM and SIGKILL; read when the first signal is sent.
  readonly graceMs: () => number;
  // Called for each chunk after it was appended to its log. The stream is not read while the promise is pending. An
  // error ends the process, and no later chunk is handed on.
  readonly onChunk: (stream: StreamName, chunk: Buffer) => void | Promise<void>;
  // Called once, when the process leaves `running`.
  readonly onStop?: () => void;
  // Called when stdout was closed and all its chunks were handed on.
  readonly onOutputEnd?: () => void;
}

export interface OwnedEnd {
  // Code and signal are null if the process could not be ended.
  readonly exit: Exit;
  // The first error of ours: a log could not be written or closed, a chunk could not be handled.
  readonly failure: { readonly error: unknown } | null;
  // The pids of its tree that could not be ended.
  readonly left: readonly number[];
  // `cut`: a process that could not be found kept a pipe open.
  readonly pipes: 'closed' | 'cut';
}

export class OwnedProcess {
  readonly pid: number;
  // Distinguishes the process from a later one with the same pid; '' where unknown.
  readonly startTime: string;
  // Never rejects.
  readonly done: Promise<OwnedEnd>;
  readonly #options: OwnedProcessOptions;
  readonly #tree: ProcessTree;
  #state: 'running' | 'ending' | 'exited' = 'running';
  #failure: OwnedEnd['failure'] = null;
  #treeEnd: Promise<TreeEnd> | null = null;
  #stopWaiting = () => {};

  // Kills the process if it cannot be watched: nothing would end it.
  constructor(options: OwnedProcessOptions) {
    const { child, mark } = options;
    this.#options = options;
    this.pid = child.pid;
    try {
      this.startTime = readStartTime(child.pid);
      this.#tree = new ProcessTree((other) => other === mark, this);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
    this.done = this.#live();
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  // Sends SIGTERM to the whole tree and SIGKILL after the grace. Does nothing after the exit.
  end(): void {
    if (this.#state === 'exited') return;
    this.#leave('ending');
    this.#endTree().then(({ left }) => left.length > 0 && this.#stopWaiting(), this.#stopWaiting);
  }

  async #live(): Promise<OwnedEnd> {
    const exited = this.#exit();
    const output = this.#pump('stdout').then(() => this.#options.onOutputEnd?.());
    const pumps = Promise.all([output, this.#pump('stderr')]);
    const exit = await exited;
    this.#leave('exited');
    const left = await this.#endTree().then(
      (end) => end.left.map(({ pid }) => pid),
      (error: unknown) => (this.#fail(error), []),
    );
    const pipes = await this.#drain(pumps);
    await closeLogs(Object.values(this.#options.logs)).catch((error: unknown) => this.#fail(error));
    return { exit, failure: this.#failure, left, pipes };
  }

  #pump(stream: StreamName): Promise<void> {
    const { child, logs, idle, onChunk } = this.#options;
    return pump(child[stream], {
      log: logs[stream],
      idle,
      deliver: (chunk) => (this.#failure ? undefined : onChunk(stream, chunk)),
      fail: (error) => this.#fail(error),
    });
  }

  #exit(): Promise<Exit> {
    return new Promise((resolve) => {
      this.#options.child.once('exit', (code, signal) => resolve({ code, signal }));
      this.#stopWaiting = () => resolve({ code: null, signal: null });
    });
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    if (this.#state === 'running') this.end();
  }

  #leave(next: 'ending' | 'exited'): void {
    const wasRunning = this.#state === 'running';
    this.#state = next;
    if (wasRunning) this.#options.onStop?.();
  }

  #endTree(): Promise<TreeEnd> {
    const { graceMs, timers } = this.#options;
    this.#treeEnd ??= endTree(async () => this.#tree.look(await readTable()), { graceMs: graceMs(), timers });
    return this.#treeEnd;
  }

  #drain(pumps: Promise<unknown>): Promise<'closed' | 'cut'> {
    const { child, logs, idle, timers } = this.#options;
    const cut = () => void [child.stdout, child.stderr].map((pipe) => pipe.destroy());
    return drain({ pumps, idle, bytes: () => logs.stdout.bytes + logs.stderr.bytes, cut }, timers);
  }
}
