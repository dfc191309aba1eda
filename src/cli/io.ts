// What a command may touch of the outside, as arguments; and how it ends.
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
  // Null: the folder was deleted.
  readonly cwd: string | null;
  readonly machine: MachineFacts;
  readonly terminal: TerminalFacts;
  // Answers how to stop listening. While somebody listens, the signal does not end the process.
  readonly onSignal: (signal: Signal, handler: () => void) => () => void;
  // Called once, after an exception or a rejection that nothing has caught. The process ends when the handler is done,
  // and after 5 s in any case.
  readonly onCrash: (handler: (error: unknown) => Promise<void>) => void;
  // Calls `restore` if the process exits or is ended by a signal before the terminal is released.
  readonly holdTerminal: (restore: () => void) => () => void;
  // The exit code when the reader of stdout goes away; succeeded, unless a run is left to itself by that.
  readonly setBrokenPipeCode: (code: number) => void;
  // The command that started this process to work for it, if one did.
  readonly parent: Parent | null;
}

export type Signal = 'SIGINT' | 'SIGTERM';

export interface MachineFacts {
  readonly home: string;
  readonly userName: string;
  readonly hostName: string;
  readonly platform: string;
  readonly arch: string;
  readonly pid: number;
  readonly cores: number;
  // The Node that runs us, the script that it was given, and the folder of the built program.
  readonly node: string;
  readonly entry: string;
  readonly programs: string;
}

export interface TerminalFacts {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  // As they are now: a window may be resized at any time.
  readonly columns: () => number;
  readonly rows: () => number;
}

export interface Parent {
  send(message: Json): Promise<void>;
  disconnect(): void;
  // It has ended, or does not listen any more.
  readonly gone: Promise<void>;
}

export const EXIT = { ok: 0, failed: 1, usage: 2, waiting: 3, canceled: 4, interrupted: 130 } as const;

export function exitCodeOf(status: RunState): number {
  if (status === 'succeeded') return EXIT.ok;
  if (status === 'waiting_user') return EXIT.waiting;
  return status === 'canceled' ? EXIT.canceled : EXIT.failed;
}

// What JSON does not escape although a terminal obeys it or does not show it.
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

// Gathers lines of JSON and writes them in large pieces; waits while the reader is slow, so nothing piles up. On a
// terminal, which an engine must not control, the same values are written with more escapes.
export class LineWriter {
  readonly #stream: Writable;
  readonly #isTerminal: boolean;
  #pending: Buffer[] = [];

  constructor({ stdout, terminal }: Pick<Io, 'stdout' | 'terminal'>) {
    this.#stream = stdout;
    this.#isTerminal = terminal.stdout;
  }

  addLine(line: string): void {
    this.#pending.push(Buffer.from(`${line}\n`));
  }

  // Bytes that are whole lines already.
  addBytes(lines: Buffer): void {
    this.#pending.push(lines);
  }

  async flush(): Promise<void> {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    if (!this.#stream.write(this.#isTerminal ? escapeUnseen(bytes.toString('utf8')) : bytes))
      await once(this.#stream, 'drain');
  }
}

function escapeUnseen(json: string): string {
  return json.replaceAll(UNSEEN, (character) => character.split('').map(escapeUnit).join(''));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
