// The process of one app-server, from its start until nothing of it is left. `running` → (exit, end of its output,
// close, or a failure of ours) → its tree is ended → its output is read to the end → `done`. What either side says is
// recorded before it is heard.
import type { Readable } from 'node:stream';
import { endTree, type TreeEnd } from '../process/end-tree.js';
import { readStartTime, readTable } from '../process/process-table.js';
import { ProcessTree } from '../process/process-tree.js';
import { spawnProcess, type Command, type SpawnedProcess } from '../process/spawn.js';
import type { Timers } from '../process/timers.js';
import { AppServerError } from './app-server-error.js';
import type { GrowingFile, Recording } from './recording.js';

// From the end of its input to SIGTERM, and from there to SIGKILL: it goes within 50 ms of either.
const CLOSE_GRACE_MS = 3000;
const TERM_GRACE_MS = 2000;
// A pipe that stays open when all we know of are gone is held by somebody who cannot be found.
const DRAIN_MS = 5000;

export interface ServerEnd {
  readonly code: number | null;
  readonly signal: string | null;
  // What went wrong on our side, or null.
  readonly error: Error | null;
}

export interface ServerProcessHandlers {
  // A chunk of its output, after it was recorded.
  said(chunk: Buffer): void;
}

export class ServerProcess {
  readonly pid: number;
  readonly done: Promise<ServerEnd>;
  readonly #child: SpawnedProcess;
  readonly #recording: Recording;
  readonly #handlers: ServerProcessHandlers;
  readonly #timers: Timers;
  readonly #tree: ProcessTree;
  #state: 'running' | 'closing' | 'gone' = 'running';
  #failure: Error | null = null;
  #treeEnd: Promise<TreeEnd> | null = null;
  #cancelGrace = () => {};
  #stopWaiting = () => {};

  private constructor(
    child: SpawnedProcess,
    mark: string,
    recording: Recording,
    handlers: ServerProcessHandlers,
    timers: Timers,
  ) {
    this.#child = child;
    this.#recording = recording;
    this.#handlers = handlers;
    this.#timers = timers;
    this.pid = child.pid;
    this.#tree = new ProcessTree((found) => found === mark, { pid: child.pid, startTime: readStartTime(child.pid) });
    // A closed pipe shows in the exit.
    child.stdin?.on('error', () => {});
    this.done = this.#live();
  }

  // The recording is the process's from here on, which closes it.
  static async launch(
    command: Omit<Command, 'stdin' | 'keepsStdin'>,
    recording: Recording,
    handlers: ServerProcessHandlers,
    timers: Timers,
  ): Promise<ServerProcess> {
    let child: ServerProcess | null = null;
    try {
      const spawned = await spawnProcess({ ...command, stdin: null, keepsStdin: true });
      if (!spawned.started) {
        const isMissing = spawned.reason === 'not_found' || spawned.reason === 'not_executable';
        throw new AppServerError(
          isMissing ? 'codex_not_found' : 'not_started',
          `codex app-server could not be started: ${spawned.message}`,
        );
      }
      child = new ServerProcess(spawned.process, command.mark, recording, handlers, timers);
      return child;
    } finally {
      if (child === null) await recording.close();
    }
  }

  // False as soon as it is known to have ended, or is being ended.
  get isOpen(): boolean {
    return this.#state === 'running';
  }

  write(line: string): void {
    if (this.#state !== 'running') throw new AppServerError('closed', 'codex app-server is closed');
    this.#recording.request(line);
    this.#child.stdin?.write(line);
  }

  // The end of its input, which it takes for a farewell; then by force.
  close(): void {
    if (this.#state !== 'running') return;
    this.#state = 'closing';
    this.#child.stdin?.end();
    this.#cancelGrace = this.#timers.set(CLOSE_GRACE_MS, () => this.#force());
  }

  // Without a farewell.
  force(): void {
    if (this.#state !== 'gone') this.#force();
  }

  async #live(): Promise<ServerEnd> {
    const exited = this.#exit();
    const heard = this.#pump(this.#child.stdout, this.#recording.events, this.#handlers.said);
    // Without its output nothing can be asked of it any more.
    void heard.then(() => this.close());
    const pumps = Promise.all([heard, this.#pump(this.#child.stderr, this.#recording.stderr)]);
    const { code, signal } = await exited;
    this.#state = 'gone';
    this.#cancelGrace();
    await this.#endTree().then(
      ({ left }) =>
        left.length > 0 && this.#note(new Error(`could not end process ${left.map(({ pid }) => pid).join(', ')}`)),
      (error: unknown) => this.#note(error),
    );
    await this.#drain(pumps);
    await this.#recording.close().catch((error: unknown) => this.#note(error));
    return { code, signal, error: this.#failure };
  }

  #exit(): Promise<{ code: number | null; signal: string | null }> {
    return new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve({ code, signal }));
      this.#stopWaiting = () => resolve({ code: null, signal: null });
    });
  }

  // After a failure of ours the pipe is still read, so that the process does not block on it while it is ended.
  async #pump(source: Readable, file: GrowingFile, said?: (chunk: Buffer) => void): Promise<void> {
    try {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        if (this.#failure) continue;
        try {
          await file.append(chunk);
          said?.(chunk);
        } catch (error) {
          this.#note(error);
          this.#force();
        }
      }
    } catch (error) {
      // Cut off by ourselves.
      if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'))
        this.#note(error);
    }
  }

  async #drain(pumps: Promise<unknown>): Promise<void> {
    const cancel = this.#timers.set(
      DRAIN_MS,
      () => void [this.#child.stdout, this.#child.stderr].map((pipe) => pipe.destroy()),
    );
    await pumps;
    cancel();
  }

  #force(): void {
    if (this.#state === 'running') this.#state = 'closing';
    this.#cancelGrace();
    this.#endTree().then(({ left }) => left.length > 0 && this.#stopWaiting(), this.#stopWaiting);
  }

  #endTree(): Promise<TreeEnd> {
    this.#treeEnd ??= endTree(async () => this.#tree.look(await readTable()), {
      graceMs: TERM_GRACE_MS,
      timers: this.#timers,
    });
    return this.#treeEnd;
  }

  #note(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }
}
