// Reads one turn's stdout and stderr: bytes in, drafts out. It never throws for any output of an engine, and the range
// of at least one draft covers every byte. The engine's own part is a ParserReader; this file has the common parts:
// lines, decoding, unusual bytes, stderr.
import { isUtf8 } from 'node:buffer';
import { stripVTControlCharacters } from 'node:util';
import type { RequestMessage } from '../jsonrpc/read-message.js';
import type { ReceivedLine } from '../jsonrpc/received-line.js';
import type { JsonObject } from '../kernel/json.js';
import type { RaspDraft } from '../rasp/draft.js';
import type { StreamName } from '../rasp/event.js';
import type { TurnEvidence } from '../run/evidence.js';
import { invariant } from '../kernel/invariant.js';
import { classifyFailure } from './auth-failure.js';
import { Emitter, type ParserCounts } from './emitter.js';
import { readEnvelope } from './envelope.js';
import { LineFramer, MAX_LINE_BYTES, type LineSink } from './framing.js';
import type { NativeRequest } from './native-request.js';

// Everything that an engine's output shows. The envelope in its last message is read in the same way for all engines.
interface ReaderEvidence extends Omit<TurnEvidence, 'sessionId' | 'done' | 'complaint'> {
  // A line that may be the reason for a failure, if the engine prints it elsewhere than on stderr.
  readonly complaint?: string | undefined;
}

export interface ParserReader {
  // One line of stdout, without its end. emitter.range is its range. `received` is the same line if it was parsed
  // before (a running resident engine); a line from a log has none.
  stdoutLine(text: string, terminated: boolean, received?: ReceivedLine): void;
  // One line of stderr; true if the reader handled it, otherwise it becomes raw.
  stderrLine?(text: string): boolean;
  // A line that is too long to buffer begins: lines that were held for a possible continuation must be emitted now.
  longLine?(stream: StreamName): void;
  // A running resident engine sent a request in a line too long to be parsed as an event.
  longRequest?(message: RequestMessage): void;
  finish(): void;
  // The engine repeats itself and would do so forever.
  runaway?(): boolean;
  // For a resident engine: whether its turn has ended, and its unanswered requests, oldest first.
  turnOver?(): boolean;
  openRequests?(): readonly NativeRequest[];
  // For a resident engine: a tool call that started in an earlier turn may still run.
  isToolRunning?(): boolean;
  evidence(): ReaderEvidence;
}

// What the parser of one turn of a resident engine leaves for the parser of the next.
export interface ReaderMemory {
  // The session of the run; lines of another session belong to a subagent.
  session: string | null;
  // The turn that is running, and the last one that ended, as the lines read so far show it.
  turn: string | null;
  lastTurn: string | null;
  // The bodies of the items that have begun, by their id.
  readonly items: Map<string, JsonObject>;
}

export interface ParserStart {
  // The offsets in the logs where the turn begins.
  readonly at?: Readonly<Record<StreamName, number>>;
  readonly memory?: ReaderMemory;
}

export interface TurnParserOptions extends ParserStart {
  readonly profile: string;
  readonly createReader: (out: Emitter, memory: ReaderMemory) => ParserReader;
  // Whether the engine can resume a session with this id.
  readonly acceptsSession: (sessionId: string) => boolean;
  readonly engineVersion: string | undefined;
}

// The method that Buffer.toString calls internally, without its checks, because it is called for every line.
type DirectBuffer = Buffer & { utf8Slice(start: number, end: number): string };

const LF = 0x0a;
const CR = 0x0d;

// Lines of stderr that are worth including in an error message, if the process failed.
const COMPLAINT = new RegExp(
  String.raw`\b(error|fatal|invalid|failed|denied|unauthorized|not found|not logged in|please set|not specified|` +
    String.raw`trusted directory)\b`,
  'i',
);
const REMARK = /^\s*(\[STARTUP\]|warning\b)/i;
const MAX_COMPLAINT = 500;

export class TurnParser {
  readonly #out: Emitter;
  readonly #reader: ParserReader;
  readonly #framers: Record<StreamName, LineFramer>;
  #complaint: string | null = null;
  #finished = false;

  constructor({ profile, createReader, acceptsSession, engineVersion, at, memory = newMemory() }: TurnParserOptions) {
    this.#out = new Emitter(profile, acceptsSession, engineVersion);
    this.#reader = createReader(this.#out, memory);
    this.#framers = {
      stdout: new LineFramer(this.#sink('stdout'), at?.stdout),
      stderr: new LineFramer(this.#sink('stderr'), at?.stderr),
    };
  }

  push(stream: StreamName, chunk: Buffer): RaspDraft[] {
    invariant(!this.#finished, 'a finished turn gets no more bytes');
    this.#framers[stream].push(chunk);
    return this.#out.drain();
  }

  // One line of stdout that was parsed when it was received. Gives the same drafts as `push` of its bytes.
  pushLine(line: ReceivedLine): RaspDraft[] {
    invariant(!this.#finished, 'a finished turn gets no more bytes');
    const { bytes, from, to, message } = line;
    const isLong = bytes.length > MAX_LINE_BYTES;
    // A line without its end may only be read at the end of the turn.
    if (isLong || bytes[bytes.length - 1] !== LF) {
      this.#framers.stdout.push(bytes);
      if (isLong && message.type === 'request') this.#reader.longRequest?.(message);
      return this.#out.drain();
    }
    this.#framers.stdout.pass(from, to);
    this.#out.at({ stream: 'stdout', from, to });
    if (bytes[bytes.length - 2] === CR) this.#out.note('CRLF_LINES');
    if (line.text.includes('\ufffd') && !isUtf8(bytes)) this.#out.note('INVALID_UTF8');
    const text = this.#withoutMark(line.text, from);
    // Without its byte order mark the text differs from the one that was parsed.
    this.#reader.stdoutLine(text, true, text === line.text ? line : undefined);
    return this.#out.drain();
  }

  finish(): RaspDraft[] {
    if (this.#finished) return [];
    this.#finished = true;
    this.#framers.stdout.end();
    this.#framers.stderr.end();
    this.#out.at(null);
    this.#reader.finish();
    this.#out.at(null);
    this.#reportOddities();
    return this.#out.drain();
  }

  counts(): ParserCounts {
    return this.#out.counts();
  }

  // The engine's session id, in any form, as soon as the output names it.
  get boundSession(): string | null {
    return this.#out.sessionId;
  }

  get turnOver(): boolean {
    return this.#reader.turnOver?.() ?? false;
  }

  get openRequests(): readonly NativeRequest[] {
    return this.#reader.openRequests?.() ?? [];
  }

  // A tool call has started and not ended: silence is then the tool's.
  get isToolRunning(): boolean {
    return this.#out.hasOpenTools || (this.#reader.isToolRunning?.() ?? false);
  }

  // The engine must be stopped from outside.
  get runaway(): boolean {
    return this.#reader.runaway?.() ?? false;
  }

  evidence(): TurnEvidence {
    const { complaint = this.#complaint, ...seen } = this.#reader.evidence();
    const envelope = readEnvelope(seen.lastMessage);
    return {
      ...seen,
      sessionId: this.#out.resumableSessionId,
      questions: envelope.question ? [...seen.questions, envelope.question] : seen.questions,
      done: envelope.done,
      complaint: complaint === null ? null : classifyFailure(complaint),
    };
  }

  #sink(stream: StreamName): LineSink {
    return {
      line: (bytes, start, end, from, to, terminated) => {
        this.#out.at({ stream, from, to });
        if (terminated && end > start && bytes[end - 1] === CR) {
          end -= 1;
          this.#out.note('CRLF_LINES');
        }
        const text = this.#decode(bytes, start, end, from);
        if (stream === 'stdout') this.#reader.stdoutLine(text, terminated);
        else this.#stderrLine(text, terminated);
      },
      piece: (bytes, start, end, from, to, part) => {
        if (part === 0) this.#reader.longLine?.(stream);
        this.#out.at({ stream, from, to });
        const text = this.#decode(bytes, start, end, from);
        if (stream === 'stdout') this.#out.fallbackPiece(text, part);
        else {
          if (part === 0) this.#out.note('LINE_TOO_LONG');
          this.#out.raw('stderr', text, part);
        }
      },
    };
  }

  #decode(bytes: Buffer, start: number, end: number, from: number): string {
    const text = (bytes as DirectBuffer).utf8Slice(start, end);
    // U+FFFD may be the engine's own character, so only then the bytes are checked.
    if (text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) this.#out.note('INVALID_UTF8');
    return this.#withoutMark(text, from);
  }

  // A byte order mark counts only at the beginning of the log.
  #withoutMark(text: string, from: number): string {
    if (from > 0 || text.charCodeAt(0) !== 0xfeff) return text;
    this.#out.note('BYTE_ORDER_MARK');
    return text.slice(1);
  }

  #stderrLine(text: string, terminated: boolean): void {
    if (!terminated) this.#out.note('UNTERMINATED_LAST_LINE');
    if (text.includes('\u001b')) this.#out.note('ANSI_SEQUENCES');
    if (text.includes('\0')) this.#out.note('NUL_BYTES');
    if (this.#reader.stderrLine?.(text)) return;
    if (this.#complaint === null && COMPLAINT.test(text) && !REMARK.test(text))
      this.#complaint = stripVTControlCharacters(text).trim().slice(0, MAX_COMPLAINT);
    this.#out.raw('stderr', text);
  }

  // Reported once at the end, with counts: the lines themselves were handled when they came.
  #reportOddities(): void {
    for (const { code, lines, firstByte } of this.#out.oddities('stdout')) {
      this.#out.warn(code, `stdout: ${plural(lines)}`, { lines, first_byte: firstByte });
    }
    const lines = this.#out.stderrLines;
    const flags = this.#out.oddities('stderr').map(({ code }) => code);
    if (lines > 0 || flags.length > 0)
      this.#out.warn('STDERR_TEXT', `${plural(lines)} of stderr kept as text`, {
        lines,
        flags: flags.length > 0 ? flags : undefined,
      });
  }
}

export function newMemory(session: string | null = null): ReaderMemory {
  return { session, turn: null, lastTurn: null, items: new Map() };
}

function plural(lines: number): string {
  return `${lines} line${lines === 1 ? '' : 's'}`;
}
