// One child process from its start until nothing of it is left. `running` → (end, a deadline, or a failure of ours) →
// `ending` → (exit) → its tree is ended → its output is drained → `done`.
// Every byte it printed is in its log before anyone hears of it.
import type { StreamName } from '../rasp/event.js';
import type { Exit } from '../run/judge-completion.js';
import type { ChildEnd, EndReason } from './child-end.js';
import { drain } from './drain.js';
import { endTree, type TreeEnd } from './end-tree.js';
import { IdleWatch } from './idle-watch.js';
import { LeftBehindError } from './left-behind-error.js';
import { readStartTime, readTable } from './process-table.js';
import { ProcessTree } from './process-tree.js';
import { pump } from './pump.js';
import { spawnProcess, type Command, type Refusal, type SpawnedProcess } from './spawn.js';
import { closeLogs, openLogs, type StreamLogs } from './stream-log.js';
import { systemTimers, type Timers } from './timers.js';

export type { ChildEnd, EndReason } from './child-end.js';
export { systemTimers, type Timers } from './timers.js';

export interface ChildSpec extends Command {
  // Never a shell.
  readonly argv: readonly string[];
  readonly cwd: string;
  // The complete environment of the child, except the mark.
  readonly env: Readonly<Record<string, string>>;
  // Written, then closed; null: nothing to read.
  readonly stdin: string | null;
  // Files to append to, made if they are not there. With content they are refused.
  readonly logs: Readonly<Record<StreamName, string>>;
  // PARLEY_TURN in the child's environment, inherited by its descendants.
  readonly mark: string;
  // Null: no limit.
  readonly turnTimeoutMs: number | null;
  // Without output on either stream, while no tool call is known to be running.
  readonly idleTimeoutMs: number;
  // The same while one is; as long as the other if nothing is said.
  readonly toolTimeoutMs?: number;
  // When a silence is reported; never if nothing is said.
  readonly silenceNoticeMs?: number;
  // Between SIGTERM and SIGKILL.
  readonly graceMs: number;
}

export interface ChildHandlers {
  // Called for each chunk after it was appended to its log. While the promise is open, nothing more is read from that
  // stream. A throw ends the child, and `done` rejects with it.
  onChunk(stream: StreamName, chunk: Buffer): void | Promise<void>;
  // Whether what it printed so far shows a tool call that has not ended.
  isToolRunning?(): boolean;
  // It has printed nothing for the time of the notice.
  onSilence?(): void;
}

export interface Child {
  readonly pid: number;
  // Tells a reused pid apart; '' where unknown.
  readonly startTime: string;
  // SIGTERM to the whole tree, after the grace SIGKILL; no grace for what works in another session. The first reason
  // counts; after the exit it does nothing.
  end(reason: EndReason): void;
  // Resolves when the process is gone, its output is in the logs (on the disk) and handled, and nothing of its tree is
  // left.
  readonly done: Promise<ChildEnd>;
  // What was logged so far is on the disk.
  sync(): Promise<void>;
}

export type StartResult = { readonly started: true; readonly child: Child } | Refusal;

export async function startChild(
  spec: ChildSpec,
  handlers: ChildHandlers,
  timers: Timers = systemTimers,
): Promise<StartResult> {
  const logs = await openLogs(spec.logs);
  let child: Child | null = null;
  try {
    const spawned = await spawnProcess(spec);
    if (!spawned.started) return spawned;
    child = own(spec, handlers, timers, logs, spawned.process);
    return { started: true, child };
  } finally {
    if (child === null) await closeLogs(logs);
  }
}

// A process that cannot be looked after must not live.
function own(
  spec: ChildSpec,
  handlers: ChildHandlers,
  timers: Timers,
  logs: StreamLogs,
  process: SpawnedProcess,
): Child {
  try {
    return new RunningChild(spec, handlers, timers, logs, process);
  } catch (error) {
    process.kill('SIGKILL');
    throw error;
  }
}

class RunningChild implements Child {
  readonly pid: number;
  readonly startTime: string;
  readonly done: Promise<ChildEnd>;
  readonly #spec: ChildSpec;
  readonly #handlers: ChildHandlers;
  readonly #timers: Timers;
  readonly #logs: StreamLogs;
  readonly #process: SpawnedProcess;
  readonly #tree: ProcessTree;
  readonly #idle: IdleWatch;
  readonly #cancelTurnTimeout: () => void;
  #phase: 'running' | 'ending' | 'exited' = 'running';
  #reason: EndReason | null = null;
  #failure: { readonly error: unknown } | null = null;
  #treeEnd: Promise<TreeEnd> | null = null;
  #stopWaiting = () => {};

  constructor(spec: ChildSpec, handlers: ChildHandlers, timers: Timers, logs: StreamLogs, process: SpawnedProcess) {
    this.#spec = spec;
    this.#handlers = handlers;
    this.#timers = timers;
    this.#logs = logs;
    this.#process = process;
    this.pid = process.pid;
    this.startTime = readStartTime(process.pid);
    this.#tree = new ProcessTree((mark) => mark === spec.mark, this);
    this.#idle = new IdleWatch(timers);
    this.#idle.start({
      idleMs: spec.idleTimeoutMs,
      toolMs: spec.toolTimeoutMs ?? spec.idleTimeoutMs,
      noticeMs: spec.silenceNoticeMs ?? null,
      isToolRunning: () => handlers.isToolRunning?.() ?? false,
      onLimit: (reason) => this.end(reason),
      onNotice: () => handlers.onSilence?.(),
    });
    this.#cancelTurnTimeout =
      spec.turnTimeoutMs === null ? () => {} : timers.set(spec.turnTimeoutMs, () => this.end('turn_timeout'));
    this.done = this.#live();
    // Whoever wants to know asks for `done`, perhaps later than it failed.
    this.done.catch(() => {});
  }

  end(reason: EndReason): void {
    if (this.#phase !== 'running') return;
    this.#reason = reason;
    this.#beginEnding();
  }

  async sync(): Promise<void> {
    await Promise.all([this.#logs.stdout.sync(), this.#logs.stderr.sync()]);
  }

  async #live(): Promise<ChildEnd> {
    const pumps = Promise.all([this.#pump('stdout'), this.#pump('stderr')]);
    const exit = await this.#exit();
    this.#phase = 'exited';
    this.#stopDeadlines();
    const { left, pipes } = await this.#clear(pumps);
    if (this.#failure) throw this.#failure.error;
    const end: ChildEnd = {
      exit,
      endedByUs: this.#reason,
      streams: { stdout: this.#logs.stdout.digest(), stderr: this.#logs.stderr.digest() },
    };
    if (left.length > 0 || pipes === 'cut')
      throw new LeftBehindError(
        left.map(({ pid }) => pid),
        end,
      );
    return end;
  }

  async #clear(pumps: Promise<unknown>) {
    try {
      const { left } = await this.#endTree();
      return { left, pipes: await this.#drain(pumps) };
    } finally {
      await closeLogs(this.#logs).catch((error: unknown) => this.#fail(error));
    }
  }

  #pump(stream: StreamName): Promise<void> {
    return pump(this.#process[stream], {
      log: this.#logs[stream],
      idle: this.#idle,
      deliver: (chunk) => (this.#failure ? undefined : this.#handlers.onChunk(stream, chunk)),
      fail: (error) => this.#fail(error),
    });
  }

  // Its own verdict; or none, when it cannot be ended.
  #exit(): Promise<Exit> {
    return new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => resolve({ code, signal }));
      this.#stopWaiting = () => resolve({ code: null, signal: null });
    });
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    if (this.#phase === 'running') this.#beginEnding();
  }

  #beginEnding(): void {
    this.#phase = 'ending';
    this.#stopDeadlines();
    this.#endTree().then(({ left }) => left.length > 0 && this.#stopWaiting(), this.#stopWaiting);
  }

  #endTree(): Promise<TreeEnd> {
    this.#treeEnd ??= endTree(async () => this.#tree.look(await readTable()), {
      graceMs: this.#reason === 'other_session' ? 0 : this.#spec.graceMs,
      timers: this.#timers,
    });
    return this.#treeEnd;
  }

  #stopDeadlines(): void {
    this.#cancelTurnTimeout();
    this.#idle.stop();
  }

  #drain(pumps: Promise<unknown>): Promise<'closed' | 'cut'> {
    const { stdout, stderr } = this.#process;
    const cut = () => void [stdout, stderr].map((pipe) => pipe.destroy());
    return drain(
      { pumps, idle: this.#idle, bytes: () => this.#logs.stdout.bytes + this.#logs.stderr.bytes, cut },
      this.#timers,
    );
  }
}
