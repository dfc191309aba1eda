// Collects a profile's results: drafts with the byte range of the current line, and the parser's counts.
import type { DiagnosticCode } from '../contract/error-codes.js';
import type { Json } from '../kernel/json.js';
import { CONFIDENCE } from '../rasp/confidence.js';
import { TEXT_MEMBER, type ByteRange, type JsonText, type RaspDraft } from '../rasp/draft.js';
import type { RaspData, RaspType, StreamName } from '../rasp/event.js';
import type { WholeMessage } from './message-text.js';
import { sourceLiteral } from './source-literal.js';

export interface ParserCounts {
  readonly profile: string;
  // Units are stdout's non-blank lines, or the one document of a document profile.
  readonly units: number;
  readonly parsed: number;
  readonly fallbacks: number;
  readonly warnings: Readonly<Record<string, number>>;
}

export interface Oddity {
  readonly code: DiagnosticCode;
  readonly lines: number;
  readonly firstByte: number;
}

// An event of a line that had to be cleaned before it could be decoded is slightly less certain.
const CLEANED: ReadonlySet<DiagnosticCode> = new Set(['ANSI_SEQUENCES', 'BYTE_ORDER_MARK']);

// An engine that starts more calls than this without ending them is not tracked further.
const MOST_OPEN_TOOLS = 10_000;

const DRIFT: ReadonlySet<DiagnosticCode> = new Set(['UNKNOWN_EVENT_TYPE', 'FIELD_DRIFT']);

export type WarningDetail = Omit<RaspData['diagnostic.parser.warning'], 'code' | 'message' | 'engine_version'>;

export class Emitter {
  readonly profile: string;
  readonly #engineVersion: string | undefined;
  readonly #acceptsSession: (sessionId: string) => boolean;
  #drafts: RaspDraft[] = [];
  #range: ByteRange | null = null;
  #line = '';
  // The confidence of events from the current line, unless a rule sets another one.
  #confidence: number = CONFIDENCE.structured;
  #sessionId: string | null = null;
  #stderrLines = 0;
  // The tool calls that have started and not ended, by id.
  readonly #openTools = new Set<string>();
  #parsed = 0;
  #fallbacks = 0;
  readonly #warnings = new Map<DiagnosticCode, number>();
  readonly #oddities: Record<StreamName, Map<DiagnosticCode, Oddity>> = { stdout: new Map(), stderr: new Map() };

  constructor(profile: string, acceptsSession: (sessionId: string) => boolean, engineVersion?: string) {
    this.profile = profile;
    this.#engineVersion = engineVersion;
    this.#acceptsSession = acceptsSession;
  }

  // Everything emitted from now on comes from these bytes.
  at(range: ByteRange | null): void {
    this.#range = range;
    this.#confidence = CONFIDENCE.structured;
  }

  get range(): ByteRange | null {
    return this.#range;
  }

  get sessionId(): string | null {
    return this.#sessionId;
  }

  // Returns the session id if its form is safe to pass back to the engine.
  get resumableSessionId(): string | null {
    return this.#sessionId !== null && this.#acceptsSession(this.#sessionId) ? this.#sessionId : null;
  }

  // From here on every event carries the session id.
  bindSession(sessionId: string, model?: string, confidence: number = this.#confidence): void {
    this.#sessionId = sessionId;
    this.emit('lifecycle.session.bound', { session_id: sessionId, handle_type: 'session_id', model }, null, confidence);
    if (this.resumableSessionId === null)
      this.warn('SESSION_ID_INVALID', 'the session id has a form that cannot be resumed safely');
  }

  // The decoded line that the current events come from.
  set line(text: string) {
    this.#line = text;
  }

  emit<T extends RaspType>(
    type: T,
    data: RaspData[T],
    itemId: string | null = null,
    confidence: number = this.#confidence,
  ): void {
    this.#push(type, data, JSON.stringify(data), itemId, confidence);
  }

  // Emits text of the agent, which starts in the line after `opening`. Returns its JSON text.
  emitText(
    type: 'agent.message.delta' | 'agent.message.final' | 'agent.reasoning',
    text: string,
    opening: string,
    itemId: string | null,
  ): string {
    const literal = sourceLiteral(this.#line, opening, text);
    this.#push(type, { text }, [TEXT_MEMBER, literal, '}'], itemId, this.#confidence);
    return literal;
  }

  // A message assembled from pieces that were emitted before.
  emitMessage(
    { text, truncated, literal = JSON.stringify(text) }: WholeMessage,
    itemId: string | null,
    confidence: number,
  ): void {
    this.#push(
      'agent.message.final',
      { text, truncated },
      [TEXT_MEMBER, literal, truncated ? ',"truncated":true}' : '}'],
      itemId,
      confidence,
    );
    if (truncated)
      this.warn('MESSAGE_TRUNCATED', 'the message is longer than the limit; the rest is in the pieces only');
  }

  // Emits the end of a tool call. Its output may be long and starts in the line after `opening`.
  emitToolCompleted(
    call: Omit<RaspData['tool.call.completed'], 'output'>,
    output: Json | undefined,
    opening: string,
    itemId: string | null,
  ): void {
    // The output is the last member of the data as well: the conversation is folded from either, and the order must be
    // the same.
    const data = { ...call, output };
    const json: JsonText =
      typeof output === 'string'
        ? [`${JSON.stringify(call).slice(0, -1)},"output":`, sourceLiteral(this.#line, opening, output), '}']
        : JSON.stringify(data);
    this.#push('tool.call.completed', data, json, itemId, this.#confidence);
  }

  #push<T extends RaspType>(
    type: T,
    data: RaspData[T],
    json: JsonText,
    itemId: string | null,
    confidence: number,
  ): void {
    if (type === 'tool.call.completed') this.#openTools.delete(itemId ?? '');
    else if (type === 'tool.call.started' && this.#openTools.size < MOST_OPEN_TOOLS) this.#openTools.add(itemId ?? '');
    this.#drafts.push({
      type,
      data,
      json,
      parser: this.profile,
      confidence,
      sessionId: this.#sessionId,
      itemId,
      interactionId: null,
      range: this.#range,
    });
  }

  raw(stream: StreamName, text: string, part?: number): void {
    if (stream === 'stderr' && !(part && part > 0) && text.trim() !== '') this.#stderrLines += 1;
    this.emit(stream === 'stdout' ? 'raw.stdout' : 'raw.stderr', { text, part }, null, CONFIDENCE.raw);
  }

  warn(code: DiagnosticCode, message: string, detail: WarningDetail = {}): void {
    this.#warnings.set(code, (this.#warnings.get(code) ?? 0) + 1);
    // The version shows whether the parser or the engine has to change.
    const version = DRIFT.has(code) ? this.#engineVersion : undefined;
    this.emit(
      'diagnostic.parser.warning',
      { code, message, ...detail, engine_version: version },
      null,
      CONFIDENCE.diagnostic,
    );
  }

  // The current line is unusual in a way that does not stop it from being read; reported once per turn.
  note(code: DiagnosticCode): void {
    if (this.#range === null) return;
    if (CLEANED.has(code)) this.#confidence = CONFIDENCE.derived;
    const seen = this.#oddities[this.#range.stream].get(code);
    this.#oddities[this.#range.stream].set(code, {
      code,
      lines: (seen?.lines ?? 0) + 1,
      firstByte: seen?.firstByte ?? this.#range.from,
    });
  }

  get hasOpenTools(): boolean {
    return this.#openTools.size > 0;
  }

  // Lines of stderr kept as raw, blank ones not counted.
  get stderrLines(): number {
    return this.#stderrLines;
  }

  oddities(stream: StreamName): Oddity[] {
    return [...this.#oddities[stream].values()];
  }

  // A stdout unit that produced structured events.
  hit(): void {
    this.#parsed += 1;
  }

  // A stdout unit that was partly recovered, but not by the rules of the profile.
  miss(): void {
    this.#fallbacks += 1;
  }

  // Corrects the count: lines that were counted as hits were only guesses.
  missAll(): void {
    this.#fallbacks += this.#parsed;
    this.#parsed = 0;
  }

  // A stdout unit that could not be understood, with its text and the reason.
  fallback(text: string, code: DiagnosticCode, message: string, detail?: WarningDetail): void {
    this.raw('stdout', text);
    this.warn(code, message, detail);
    this.miss();
  }

  // The first piece of a line that is too long; the other pieces are only raw events.
  fallbackPiece(text: string, part: number): void {
    this.raw('stdout', text, part);
    if (part > 0) return;
    this.warn('LINE_TOO_LONG', 'a line is longer than the limit and is kept in pieces');
    this.miss();
  }

  // Undoes everything a line emitted, if one of its events could not be serialised.
  mark(): number {
    return this.#drafts.length;
  }

  rewind(mark: number): void {
    this.#drafts.length = mark;
  }

  drain(): RaspDraft[] {
    const drafts = this.#drafts;
    this.#drafts = [];
    return drafts;
  }

  counts(): ParserCounts {
    return {
      profile: this.profile,
      units: this.#parsed + this.#fallbacks,
      parsed: this.#parsed,
      fallbacks: this.#fallbacks,
      warnings: Object.fromEntries([...this.#warnings].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    };
  }
}
