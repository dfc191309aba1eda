// The process of a server that communicates over stdin and stdout, in any protocol. `running` → (exit, end of its
// output, close, force, or an error of ours) → `closing` → `done`. Both directions are recorded before any consumer
// gets the bytes.
import { invariant } from '../kernel/invariant.js';
import { IdleWatch } from './idle-watch.js';
import { OwnedProcess } from './owned-process.js';
import { spawnProcess, type Command, type Refusal, type SpawnedProcess } from './spawn.js';
import type { Timers } from './timers.js';
import type { Recording } from './recording.js';

// The time from the end of its input to SIGTERM, and from there to SIGKILL. The server normally exits within 50 ms of
// either.
const CLOSE_GRACE_MS = 3000;
const TERM_GRACE_MS = 2000;

/** How a server process ended. */
export interface ServerEnd {
  /** The exit code; null if a signal ended the process. */
  readonly code: number | null;
  /** The signal that ended the process, or null. */
  readonly signal: string | null;
  /** An error on our side, or null. */
  readonly error: Error | null;
}

export interface ServerProcessOptions {
  readonly command: Omit<Command, 'stdin' | 'keepsStdin'>;
  // Belongs to the process, which closes it.
  readonly recording: Recording;
  readonly timers: Timers;
  // Gets each chunk of stdout after it was recorded. While its promise is pending, stdout is not read.
  readonly onOutput: (chunk: Buffer) => void | Promise<void>;
}

export type LaunchResult = { readonly started: true; readonly server: ServerProcess } | Refusal;

export class ServerProcess {
  readonly done: Promise<ServerEnd>;
  readonly #child: SpawnedProcess;
  readonly #owned: OwnedProcess;
  readonly #recording: Recording;
  readonly #timers: Timers;
  #isClosing = false;
  #cancelGrace = () => {};

  private constructor(child: SpawnedProcess, { command, recording, timers, onOutput }: ServerProcessOptions) {
    this.#child = child;
    this.#recording = recording;
    this.#timers = timers;
    // A closed pipe is visible in the exit.
    child.stdin?.on('error', () => {});
    this.#owned = new OwnedProcess({
      child,
      mark: command.mark,
      logs: { stdout: recording.events, stderr: recording.stderr },
      timers,
      idle: new IdleWatch(timers),
      graceMs: () => TERM_GRACE_MS,
      onChunk: (stream, chunk) => (stream === 'stdout' ? onOutput(chunk) : undefined),
      onStop: () => this.#cancelGrace(),
      // A server without output cannot respond.
      onOutputEnd: () => this.close(),
    });
    this.done = this.#awaitEnd();
  }

  static async launch(options: ServerProcessOptions): Promise<LaunchResult> {
    let server: ServerProcess | null = null;
    try {
      const spawned = await spawnProcess({ ...options.command, stdin: null, keepsStdin: true });
      if (!spawned.started) return spawned;
      server = new ServerProcess(spawned.process, options);
      return { started: true, server };
    } finally {
      if (server === null) await options.recording.close();
    }
  }

  get pid(): number {
    return this.#owned.pid;
  }

  get startTime(): string {
    return this.#owned.startTime;
  }

  // False as soon as the process has exited or is being ended.
  get isOpen(): boolean {
    return this.#owned.isRunning && !this.#isClosing;
  }

  // Call it only while the server is open.
  write(line: string): void {
    invariant(this.isOpen, 'a closed server gets no input');
    this.#recording.request(line);
    this.#child.stdin?.write(line);
  }

  // Closes stdin, which makes the server exit; ends it with signals after the grace period.
  close(): void {
    if (!this.isOpen) return;
    this.#isClosing = true;
    this.#child.stdin?.end();
    this.#cancelGrace = this.#timers.set(CLOSE_GRACE_MS, () => this.#owned.end());
  }

  // Ends it with signals at once.
  force(): void {
    this.#owned.end();
  }

  async #awaitEnd(): Promise<ServerEnd> {
    const { exit, failure, left } = await this.#owned.done;
    const errors: unknown[] = failure ? [failure.error] : [];
    if (left.length > 0) errors.push(new Error(`could not end process ${left.join(', ')}`));
    try {
      this.#recording.closeRequests();
    } catch (error) {
      errors.push(error);
    }
    const [first = null] = errors;
    return { ...exit, error: first === null || first instanceof Error ? first : new Error(String(first)) };
  }
}
