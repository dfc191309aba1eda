// Everything outside the program that a command may use, passed as arguments; and the exit codes.
import type { Readable, Writable } from 'node:stream';
import { once } from 'node:events';
import type { Clock } from '../kernel/clock.js';
import type { Json } from '../kernel/json.js';
import type { Timers } from '../process/timers.js';
import type { RunState } from '../run/statechart.js';

export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly env: Readonly<Record<string, string | undefined>>;
  // Null if the folder was deleted.
  readonly cwd: string | null;
  readonly machine: MachineFacts;
  readonly terminal: TerminalFacts;
  // Returns a function that removes the handler. While a handler is set, the signal does not end the process.
  readonly onSignal: (signal: Signal, handler: () => void) => () => void;
  // Called once, after an uncaught exception or rejection. The process ends when the handler is done, after 5 s at
  // the latest.
  readonly onCrash: (handler: (error: unknown) => Promise<void>) => void;
  // Calls `restore` if the process exits or is ended by a signal before the terminal is released.
  readonly holdTerminal: (restore: () => void) => () => void;
  // Sets the exit code for a closed stdout pipe: success, unless a run then continues unwatched.
  readonly setBrokenPipeCode: (code: number) => void;
  // The command that started this process as its worker; null if none did.
  readonly parent: Parent | null;
}

type Signal = 'SIGINT' | 'SIGTERM';

interface MachineFacts {
  readonly home: string;
  readonly userName: string;
  readonly hostName: string;
  readonly platform: string;
  readonly arch: string;
  readonly pid: number;
  readonly cores: number;
  // The Node executable, the script it was started with, and the folder of the built program.
  readonly node: string;
  readonly entry: string;
  readonly programs: string;
}

interface TerminalFacts {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  // Functions, because a window may be resized at any time.
  readonly columns: () => number;
  readonly rows: () => number;
}

export interface Parent {
  send(message: Json): Promise<void>;
  disconnect(): void;
  // Resolves when the parent has exited or disconnected.
  readonly gone: Promise<void>;
}

export const EXIT = { ok: 0, failed: 1, usage: 2, waiting: 3, canceled: 4, interrupted: 130 } as const;

export function exitCodeOf(status: RunState): number {
  if (status === 'succeeded') return EXIT.ok;
  if (status === 'waiting_user') return EXIT.waiting;
  return status === 'canceled' ? EXIT.canceled : EXIT.failed;
}

// Characters that JSON does not escape, but that a terminal obeys or does not show.
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

// Buffers JSON lines and writes them in large chunks; waits for a slow reader, so memory stays bounded. On a terminal,
// which an engine must not control, it escapes more characters of the same values.
export class LineWriter {
  readonly #stream: Writable;
  readonly #isTerminal: boolean;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor({ stdout, terminal }: Pick<Io, 'stdout' | 'terminal'>) {
    this.#stream = stdout;
    this.#isTerminal = terminal.stdout;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  addLine(line: string): void {
    this.addBytes(Buffer.from(`${line}\n`));
  }

  // Adds bytes that consist of complete lines.
  addBytes(lines: Buffer): void {
    this.#pending.push(lines);
    this.#pendingBytes += lines.length;
  }

  async flush(): Promise<void> {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#stream.write(this.#isTerminal ? escapeUnseen(bytes.toString('utf8')) : bytes);
    await drained(this.#stream);
  }
}

// Waits while the reader of a stream is slow.
export async function drained(stream: Writable): Promise<void> {
  if (stream.writableNeedDrain) await once(stream, 'drain');
}

function escapeUnseen(json: string): string {
  return json.replaceAll(UNSEEN, (character) => character.split('').map(escapeUnit).join(''));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
