// One child process that runs one turn, with the deadlines of that turn. `running` → (end, a deadline, or an error of
// ours) → `ending` → (exit) → `done`; owned-process.ts has the steps in between. Every byte is in its log before any
// consumer gets it.
import type { StreamName } from '../rasp/event.js';
import type { ChildEnd, EndReason } from './child-end.js';
import { IdleWatch } from './idle-watch.js';
import { LeftBehindError } from './left-behind-error.js';
import { closeLogs } from './append-log.js';
import { OwnedProcess } from './owned-process.js';
import { spawnProcess, type Command, type Refusal, type SpawnedProcess } from './spawn.js';
import { openLogs, type StreamLogs } from './stream-log.js';
import { systemTimers, type Timers } from './timers.js';

export type { ChildEnd, EndReason } from './child-end.js';
export { systemTimers, type Timers } from './timers.js';

export interface ChildSpec extends Command {
  // Never run through a shell.
  readonly argv: readonly string[];
  readonly cwd: string;
  // The complete environment of the child, except the mark.
  readonly env: Readonly<Record<string, string>>;
  // Written to stdin, which is then closed; null: no input.
  readonly stdin: string | null;
  // Log files, created if they are missing. A file that already has content is refused.
  readonly logs: Readonly<Record<StreamName, string>>;
  // PARLEY_TURN in the child's environment, inherited by its descendants.
  readonly mark: string;
  // Null: no limit.
  readonly turnTimeoutMs: number | null;
  // The limit without output on either stream, while no tool call is known to be running.
  readonly idleTimeoutMs: number;
  // The limit while a tool call is running; default: idleTimeoutMs.
  readonly toolTimeoutMs?: number;
  // When to report silence; default: never.
  readonly silenceNoticeMs?: number;
  // The time between SIGTERM and SIGKILL.
  readonly graceMs: number;
}

export interface ChildHandlers {
  // Called for each chunk after it was appended to its log. While the promise is open, nothing more is read from that
  // stream. A throw ends the child, and `done` rejects with it.
  onChunk(stream: StreamName, chunk: Buffer): void | Promise<void>;
  // Whether the output so far shows a tool call that has not ended.
  isToolRunning?(): boolean;
  // Called when the child has printed nothing for silenceNoticeMs.
  onSilence?(): void;
}

export interface Child {
  readonly pid: number;
  // Distinguishes the process from a later one with the same pid; '' where unknown.
  readonly startTime: string;
  // Sends SIGTERM to the whole tree and SIGKILL after the grace period; members in another session get no grace period.
  // Only the first reason applies; after the exit it does nothing.
  end(reason: EndReason): void;
  // Resolves when the process has exited, its output is in the logs (on the disk) and handled, and no process of its
  // tree is left.
  readonly done: Promise<ChildEnd>;
  // Resolves when the output logged so far is on the disk.
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
    child = new RunningChild({ spec, handlers, timers, logs, process: spawned.process });
    return { started: true, child };
  } finally {
    if (child === null) await closeLogs(Object.values(logs));
  }
}

interface ChildParts {
  readonly spec: ChildSpec;
  readonly handlers: ChildHandlers;
  readonly timers: Timers;
  readonly logs: StreamLogs;
  readonly process: SpawnedProcess;
}

class RunningChild implements Child {
  readonly done: Promise<ChildEnd>;
  readonly #logs: StreamLogs;
  readonly #owned: OwnedProcess;
  #reason: EndReason | null = null;
  #cancelTurnTimeout = () => {};

  constructor({ spec, handlers, timers, logs, process }: ChildParts) {
    this.#logs = logs;
    const idle = new IdleWatch(timers);
    this.#owned = new OwnedProcess({
      child: process,
      mark: spec.mark,
      logs,
      timers,
      idle,
      graceMs: () => (this.#reason === 'other_session' ? 0 : spec.graceMs),
      onChunk: (stream, chunk) => handlers.onChunk(stream, chunk),
      onStop: () => {
        this.#cancelTurnTimeout();
        idle.stop();
      },
    });
    idle.start({
      idleMs: spec.idleTimeoutMs,
      toolMs: spec.toolTimeoutMs ?? spec.idleTimeoutMs,
      noticeMs: spec.silenceNoticeMs ?? null,
      isToolRunning: () => handlers.isToolRunning?.() ?? false,
      onLimit: (reason) => this.end(reason),
      onNotice: () => handlers.onSilence?.(),
    });
    if (spec.turnTimeoutMs !== null)
      this.#cancelTurnTimeout = timers.set(spec.turnTimeoutMs, () => this.end('turn_timeout'));
    this.done = this.#awaitEnd();
    // Prevents an unhandled rejection: a caller may await `done` after it rejected.
    this.done.catch(() => {});
  }

  get pid(): number {
    return this.#owned.pid;
  }

  get startTime(): string {
    return this.#owned.startTime;
  }

  end(reason: EndReason): void {
    if (!this.#owned.isRunning) return;
    this.#reason = reason;
    this.#owned.end();
  }

  async sync(): Promise<void> {
    await Promise.all([this.#logs.stdout.sync(), this.#logs.stderr.sync()]);
  }

  async #awaitEnd(): Promise<ChildEnd> {
    const { exit, failure, left, pipes } = await this.#owned.done;
    if (failure) throw failure.error;
    const end: ChildEnd = {
      exit,
      endedByUs: this.#reason,
      streams: { stdout: this.#logs.stdout.digest(), stderr: this.#logs.stderr.digest() },
    };
    if (left.length > 0 || pipes === 'cut') throw new LeftBehindError(left, end);
    return end;
  }
}
