// Folds RASP into the conversation that a person sees: push the journal's events in order. The fold has no other input
// and reads no clock, so the same journal always gives the same bytes.
import { invariant } from '../kernel/invariant.js';
import type { ByteRange, JsonText, RaspDraft } from '../rasp/draft.js';
import type { RaspData, RaspEvent, RaspType, StreamName } from '../rasp/event.js';
import { FOLD_VERSION, type FcmpData, type FcmpType } from './event.js';
import { SaidLines } from './said-lines.js';
import { lineOf, type FcmpDraft } from './stamp.js';
import { reuseJson, type IdMember } from './reuse-json.js';
import { checkFcmpData } from './validate.js';
import { describeSeconds } from '../run/turn-limits.js';

// The fields of a RASP event that the fold needs, from a stored event or a freshly stamped draft.
export interface FoldInput {
  readonly seq: number;
  readonly ts: string;
  readonly attempt: number;
  readonly type: string;
  readonly data: unknown;
  readonly itemId: string | null;
  readonly range: ByteRange | null;
  // The JSON text of `data`, if the caller has it.
  readonly json?: JsonText;
}

export function foldInputOf(event: RaspEvent): FoldInput {
  const ref = event.raw_ref;
  return {
    seq: event.seq,
    ts: event.ts,
    attempt: event.attempt_number,
    type: event.event.type,
    data: event.data,
    itemId: event.correlation.item_id ?? null,
    range: ref && { stream: ref.stream, from: ref.byte_from, to: ref.byte_to },
  };
}

export function foldInputOfDraft(draft: RaspDraft, seq: number, ts: string, attempt: number): FoldInput {
  const { type, data, itemId, range, json } = draft;
  return { seq, ts, attempt, type, data, itemId, range, json };
}

// Between turns the fold needs only the count to continue.
export interface FoldState {
  readonly version: number;
  readonly seq: number;
}

// So many consecutive raw lines that repeat the assistant are an echo; fewer may be a coincidence.
const MIN_ECHO_LINES = 3;
const ANSI = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;

interface Copy {
  readonly type: FcmpType;
  // The member that gets the id of the item.
  readonly idMember: IdMember | null;
}

// Events whose data is shown unchanged, after the id of their item.
const COPIED = {
  'agent.message.delta': { type: 'assistant.message.delta', idMember: 'message_id' },
  'agent.message.final': { type: 'assistant.message.final', idMember: 'message_id' },
  'agent.reasoning': { type: 'assistant.reasoning', idMember: null },
  'agent.plan': { type: 'assistant.plan', idMember: null },
  'agent.usage': { type: 'usage', idMember: null },
  'tool.call.started': { type: 'assistant.tool.started', idMember: 'call_id' },
  'tool.call.completed': { type: 'assistant.tool.completed', idMember: 'call_id' },
  'artifact.file.changed': { type: 'artifact.file.changed', idMember: null },
} as const satisfies Partial<Record<RaspType, Copy>>;

interface Held {
  readonly input: FoldInput;
  readonly type: FcmpType;
  readonly data: FcmpData[FcmpType];
}

export class ConversationFold {
  readonly #runId: string;
  #seq: number;
  #output: FcmpDraft[] = [];
  readonly #said = new SaidLines();
  // Raw lines that may turn out to be an echo, with their warnings. Once they are known to be an echo, only their
  // number is kept, so that an endless echo needs no memory.
  #held: Held[] = [];
  #heldLines = 0;

  constructor(runId: string, state: FoldState = { version: FOLD_VERSION, seq: 0 }) {
    invariant(
      state.version === FOLD_VERSION,
      `a fold of version ${state.version} cannot be continued by version ${FOLD_VERSION}`,
    );
    this.#runId = runId;
    this.#seq = state.seq;
  }

  // Call it between turns only: held lines and the lines said in a turn are not part of the saved state.
  save(): FoldState {
    invariant(this.#held.length === 0, 'a fold is saved between turns');
    return { version: FOLD_VERSION, seq: this.#seq };
  }

  // Returns the FCMP events for this RASP event, as text.
  push(input: FoldInput): string[] {
    return this.fold(input).map((event) => lineOf(this.#runId, event));
  }

  // Like push, for callers that write the events as bytes.
  fold(input: FoldInput): readonly FcmpDraft[] {
    const before = { seq: this.#seq, held: this.#held, heldLines: this.#heldLines };
    try {
      if (!this.#holds(input)) {
        this.#release();
        this.#project(input);
      }
      return this.#output;
    } catch (error) {
      // A rejected event leaves no trace in the state.
      this.#seq = before.seq;
      this.#held = before.held;
      this.#heldLines = before.heldLines;
      throw error;
    } finally {
      this.#output = [];
    }
  }

  #project(input: FoldInput): void {
    const kind = input.type as keyof RaspData;
    switch (kind) {
      case 'lifecycle.run.created': {
        const data = input.data as RaspData[typeof kind];
        this.#emit(input, 'conversation.started', {
          engine: data.engine,
          execution_mode: data.execution_mode,
          fold_version: FOLD_VERSION,
        });
        return data.prompt === '' ? undefined : this.#emit(input, 'user.message', { text: data.prompt });
      }
      case 'lifecycle.state.changed':
        return this.#stateChanged(input, input.data as RaspData[typeof kind]);
      case 'lifecycle.turn.silent': {
        const { silent_sec: seconds, tool_running: isTool } = input.data as RaspData[typeof kind];
        const message =
          `No output for ${describeSeconds(seconds)}${isTool ? ', a tool call is running' : ''}. ` +
          'The turn goes on.';
        return this.#emit(input, 'diagnostic.warning', { code: 'TURN_SILENT', message });
      }
      case 'lifecycle.turn.ended':
        return this.#said.clear();
      case 'agent.message.delta': {
        const { text } = input.data as RaspData[typeof kind];
        this.#said.addPiece(text);
        return this.#copy(input, kind, { message_id: input.itemId, text });
      }
      case 'agent.message.final': {
        const { text, truncated } = input.data as RaspData[typeof kind];
        this.#said.addMessage(text);
        return this.#copy(input, kind, { message_id: input.itemId, text, truncated });
      }
      case 'agent.reasoning':
        return this.#copy(input, kind, { text: (input.data as RaspData[typeof kind]).text });
      case 'agent.plan':
        return this.#copy(input, kind, input.data as RaspData[typeof kind]);
      case 'agent.usage':
        return this.#copy(input, kind, input.data as RaspData[typeof kind]);
      case 'tool.call.started':
        return this.#copy(input, kind, { call_id: input.itemId, ...(input.data as RaspData[typeof kind]) });
      case 'tool.call.completed':
        return this.#copy(input, kind, { call_id: input.itemId, ...(input.data as RaspData[typeof kind]) });
      case 'artifact.file.changed':
        return this.#copy(input, kind, input.data as RaspData[typeof kind]);
      case 'interaction.requested': {
        const { asked_at: _askedAt, ...question } = input.data as RaspData[typeof kind];
        return this.#emit(input, 'user.input.required', question);
      }
      case 'interaction.reply.accepted': {
        const { idempotency_key: _key, ...reply } = input.data as RaspData[typeof kind];
        return this.#emit(input, 'interaction.reply.accepted', reply);
      }
      case 'interaction.auto_decide.timeout': {
        const { decided_at: _decidedAt, ...decision } = input.data as RaspData[typeof kind];
        return this.#emit(input, 'interaction.auto_decide.timeout', decision);
      }
      case 'diagnostic.parser.warning':
        return this.#parserWarning(input);
      case 'diagnostic.engine.warning':
        return this.#emit(input, 'diagnostic.warning', {
          code: 'ENGINE_WARNING',
          message: (input.data as RaspData[typeof kind]).message,
        });
      case 'diagnostic.engine.error': {
        const { message, terminal } = input.data as RaspData[typeof kind];
        return this.#emit(input, 'diagnostic.warning', { code: 'ENGINE_ERROR', message, terminal });
      }
      case 'diagnostic.completion.unknown':
        return this.#emit(input, 'diagnostic.warning', {
          code: 'COMPLETION_UNKNOWN',
          message: (input.data as RaspData[typeof kind]).message,
        });
      case 'raw.stdout':
      case 'raw.stderr': {
        const text = plainText((input.data as RaspData[typeof kind]).text);
        return text.trim() === '' ? undefined : this.#emit(input, kind, { text });
      }
      // For operators, not for readers of the conversation.
      case 'lifecycle.turn.started':
      case 'lifecycle.process.spawned':
      case 'lifecycle.process.ended':
      case 'lifecycle.session.bound':
      case 'lifecycle.session.confirmed':
      case 'lifecycle.cancel.requested':
      case 'lifecycle.engine.progress':
      case 'tool.call.updated':
      case 'artifact.result.written':
      case 'interaction.approval.applied':
        return undefined;
      default:
        // A type of a later version is ignored; it is not an error.
        kind satisfies never;
    }
  }

  #stateChanged(input: FoldInput, data: RaspData['lifecycle.state.changed']): void {
    // The run keeps its state: this event is for operators.
    if (data.trigger === 'restart.preserve_waiting') return;
    if (data.to === 'succeeded') this.#emit(input, 'conversation.completed', { result: data.result });
    if (data.to === 'failed')
      this.#emit(input, 'conversation.failed', {
        error: data.error ?? { code: 'INTERNAL', message: 'the run failed without a reason' },
      });
    if (data.to === 'canceled') this.#emit(input, 'conversation.canceled', { actor: data.actor });
    this.#emit(input, 'conversation.state.changed', {
      from: data.from,
      to: data.to,
      trigger: data.trigger,
      updated_at: data.updated_at,
    });
  }

  #parserWarning(input: FoldInput): void {
    const { code, message } = input.data as RaspData['diagnostic.parser.warning'];
    // The lines of stderr are shown themselves.
    if (code !== 'STDERR_TEXT') this.#emit(input, 'diagnostic.warning', { code, message });
  }

  // --- echo: raw lines that only repeat the assistant are held back until their number is known ---

  #holds(input: FoldInput): boolean {
    if (input.type === 'raw.stdout' || input.type === 'raw.stderr') {
      const { text, part } = input.data as RaspData['raw.stdout'];
      const line = plainText(text).trim();
      if (line === '') return this.#held.length > 0;
      if (part !== undefined || !this.#said.has(line)) return false;
      const stream = this.#held[0]?.input.type;
      if (stream !== undefined && stream !== input.type) this.#release();
      this.#hold({ input, type: input.type, data: { text: plainText(text) } }, 1);
      return true;
    }
    const last = this.#held.at(-1);
    if (input.type !== 'diagnostic.parser.warning' || !last || !sameRange(last.input.range, input.range)) return false;
    const { code, message } = input.data as RaspData['diagnostic.parser.warning'];
    this.#hold({ input, type: 'diagnostic.warning', data: { code, message } }, 0);
    return true;
  }

  #hold(entry: Held, lines: number): void {
    this.#heldLines += lines;
    // The first line identifies the stream, the last one the end of the echo.
    const kept = this.#heldLines < MIN_ECHO_LINES ? this.#held : this.#held.slice(0, 1);
    this.#held = [...kept, entry];
  }

  #release(): void {
    if (this.#held.length === 0) return;
    const held = this.#held;
    const lines = this.#heldLines;
    this.#held = [];
    this.#heldLines = 0;
    if (lines < MIN_ECHO_LINES) {
      for (const { input, type, data } of held) this.#emit(input, type, data as never);
      return;
    }
    const last = held.at(-1)?.input;
    invariant(last, 'something was held');
    const stream: StreamName = held[0]?.type === 'raw.stderr' ? 'stderr' : 'stdout';
    this.#emit(last, 'diagnostic.warning', {
      code: 'RAW_DUPLICATE_SUPPRESSED',
      message: `${lines} lines of ${stream} repeat what the assistant said`,
      suppressed_count: lines,
      stream,
    });
  }

  #copy<K extends keyof typeof COPIED>(input: FoldInput, kind: K, data: FcmpData[(typeof COPIED)[K]['type']]): void {
    const { type, idMember } = COPIED[kind];
    const { itemId, json } = input;
    this.#add(input, type, json === undefined ? JSON.stringify(data) : reuseJson(json, idMember, itemId));
  }

  #emit<T extends FcmpType>(input: FoldInput, type: T, data: FcmpData[T]): void {
    checkFcmpData(type, data);
    this.#add(input, type, JSON.stringify(data));
  }

  #add(input: FoldInput, type: FcmpType, json: JsonText): void {
    this.#seq += 1;
    this.#output.push({
      seq: this.#seq,
      ts: input.ts,
      attempt: input.attempt,
      raspSeq: input.seq,
      type,
      json,
    });
  }
}

// Removes control sequences, because people read this text and terminals may show it. RASP keeps the original text.
function plainText(text: string): string {
  return text.includes('\u001b') ? text.replace(ANSI, '') : text;
}

function sameRange(a: ByteRange | null, b: ByteRange | null): boolean {
  return a !== null && b !== null && a.stream === b.stream && a.from === b.from && a.to === b.to;
}

// Returns the whole conversation of a stored journal.
export function projectConversation(runId: string, journal: Iterable<RaspEvent>): string[] {
  const fold = new ConversationFold(runId);
  const lines: string[] = [];
  for (const event of journal) lines.push(...fold.push(foldInputOf(event)));
  return lines;
}
