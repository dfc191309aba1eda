// A conversation as it appears on a terminal: events in, the text to write out. Messages appear while they come and are
// not repeated when they are whole. What an engine prints beside a message waits until the message is over, so that no
// sentence is torn apart. Messages, questions and outcomes stand between blank lines; the lines of work stand together.
import type { FcmpData, FcmpEvent, FcmpType } from '../fcmp/event.js';
import { isObject, parseJson } from '../kernel/json.js';
import { readEngineDetail, splitDoneMarker, type DetailCounts, type EngineDetail } from '../fcmp/engine-details.js';
import {
  renderAttempt,
  renderCanceled,
  renderCompleted,
  renderDecision,
  renderDetail,
  renderDetails,
  renderFailed,
  renderFile,
  renderHeader,
  renderPerson,
  renderPlan,
  renderReasoning,
  renderReply,
} from './event-text.js';
import { MarkdownInk } from './markdown-ink.js';
import { NO_ACTIVITY, nextActivity, toolKey, type Activity } from './progress.js';
import { renderQuestion } from './question-text.js';
import { paint, type Style } from './style.js';
import { renderTool } from './tool-text.js';
import { addUsage, renderUsage, type Usage } from './usage-text.js';
import { Wrapper } from './wrap.js';

type Kind = 'say' | 'work';
interface OpenMessage {
  readonly id: string | null;
  readonly wrapper: Wrapper;
  written: boolean;
}

// An engine may complain without end while its message stays open.
const MAX_WAITING_LINES = 100;

export interface ViewOptions {
  // Live: pieces of messages are written as they come. Else: a message when it is whole.
  readonly live: boolean;
  // How many lines of an approval are shown, where whoever asks shows the rest.
  readonly firstPage?: () => number;
  // The engine's own output and warnings are shown line by line, and not as one line for each turn.
  readonly details?: boolean;
}

export class ConversationView {
  readonly #style: Style;
  readonly #live: boolean;
  readonly #firstPage: () => number;
  readonly #showsDetails: boolean;
  // How much the engine printed beside the conversation in this turn.
  #details: DetailCounts = {};
  #activity: Activity = NO_ACTIVITY;
  #last: Kind | null = null;
  #open: OpenMessage | null = null;
  // The pieces so far of messages that are not whole yet.
  readonly #pieces = new Map<string | null, string>();
  #noise: string[] = [];
  #usage: Usage | null = null;
  #lastMessage: string | null = null;
  // A message for Parley, not for people: what it says is shown as the question or the result. Said as it is if neither
  // comes.
  #envelope: string | null = null;
  #lastPlan = '';

  constructor(style: Style, { live, firstPage = () => Infinity, details = false }: ViewOptions) {
    this.#style = style;
    this.#live = live;
    this.#firstPage = firstPage;
    this.#showsDetails = details;
  }

  // What the engine does right now, for progressLine.
  get activity(): Activity {
    return this.#activity;
  }

  push(event: FcmpEvent): string {
    const before = this.#activity;
    this.#activity = nextActivity(before, event);
    return this.#show(event, before);
  }

  // Nothing came for a while (a tenth of a second or more): a word whose end is not known yet is shown as it stands.
  pause(): string {
    return this.#open === null ? '' : this.#written(this.#open, this.#open.wrapper.pause());
  }

  // Nothing follows: what was kept back is written.
  end(): string {
    return this.#endTurn();
  }

  #show(event: FcmpEvent, before: Activity): string {
    const style = this.#style;
    if (is(event, 'assistant.message.delta')) return this.#takePiece(event.data);
    if (is(event, 'assistant.message.final')) return this.#takeMessage(event.data);
    if (is(event, 'assistant.tool.completed')) {
      const tool = before.tools.find(({ key }) => key === toolKey(event.data));
      const elapsed = tool ? Date.parse(event.ts) - tool.since : 0;
      return this.#block('work', renderTool(event.data, tool?.what ?? '', elapsed > 0 ? elapsed : null, style));
    }
    if (is(event, 'artifact.file.changed')) return this.#block('work', renderFile(event.data, style));
    if (is(event, 'assistant.reasoning')) return this.#block('work', renderReasoning(event.data.text, style));
    if (is(event, 'assistant.plan')) return this.#showPlan(event.data);
    const detail = readEngineDetail(event);
    if (detail !== null) return this.#showDetail(detail);
    if (is(event, 'usage')) {
      this.#usage = addUsage(this.#usage, event.data);
      return '';
    }
    if (is(event, 'conversation.started')) return this.#block('work', renderHeader(event.data, style));
    if (is(event, 'user.message'))
      return event.data.text === '' ? '' : this.#block('say', renderPerson(event.data.text, style));
    if (is(event, 'interaction.reply.accepted')) return this.#block('say', renderReply(event.data, style));
    if (is(event, 'interaction.auto_decide.timeout')) return this.#block('say', renderDecision(event.data, style));
    return this.#showEdge(event);
  }

  // Events between turns: what the turn kept back comes first.
  #showEdge(event: FcmpEvent): string {
    const style = this.#style;
    if (is(event, 'user.input.required') || is(event, 'conversation.completed')) this.#envelope = null;
    if (is(event, 'user.input.required')) return this.#endTurn() + this.#block('say', this.#renderQuestion(event.data));
    if (is(event, 'conversation.completed'))
      return this.#endTurn() + this.#block('say', renderCompleted(event.data, style));
    if (is(event, 'conversation.failed')) return this.#endTurn() + this.#block('say', renderFailed(event.data, style));
    if (is(event, 'conversation.canceled'))
      return this.#endTurn() + this.#block('say', renderCanceled(event.data, style));
    if (!is(event, 'conversation.state.changed')) return '';
    const ended = this.#endTurn();
    if (event.data.to !== 'running' || event.attempt_number === 1) return ended;
    return ended + this.#block('say', renderAttempt(event.attempt_number, style));
  }

  #renderQuestion(question: FcmpData['user.input.required']): string {
    const text = renderQuestion(question, this.#style, this.#lastMessage);
    return question.kind === 'approval' ? text.split('\n').slice(0, this.#firstPage()).join('\n') : text;
  }

  #takePiece({ message_id: id, text }: FcmpData['assistant.message.delta']): string {
    this.#pieces.set(id, (this.#pieces.get(id) ?? '') + text);
    return this.#live ? this.#stream(id, text) : '';
  }

  #takeMessage({ message_id: id, text, truncated = false }: FcmpData['assistant.message.final']): string {
    const pieces = this.#pieces.get(id) ?? '';
    this.#pieces.delete(id);
    this.#lastMessage = text;
    // One that came in pieces was shown in pieces, and looks the same when it is not live.
    if (pieces === '' && isEnvelope(text)) {
      this.#envelope = text;
      return '';
    }
    const { text: said, marker } = pieces === '' ? splitDoneMarker(text) : { text, marker: null };
    if (marker !== null) this.#addDetail({ kind: 'done', text: marker });
    const missing = missingText(this.#live ? pieces : '', said, truncated);
    const shown = missing === null ? this.#close() + this.#stream(id, said) : this.#stream(id, missing);
    return (
      shown + this.#close() + (truncated ? this.#block('work', paint(this.#style, 'dim', '(cut off: too long)')) : '')
    );
  }

  #stream(id: string | null, text: string): string {
    if (text === '') return '';
    let out = this.#open !== null && this.#open.id !== id ? this.#close() : '';
    this.#open ??= { id, wrapper: this.#newWrapper(), written: false };
    out += this.#written(this.#open, this.#open.wrapper.push(text));
    return out;
  }

  #newWrapper(): Wrapper {
    return new Wrapper(this.#style.width, {}, this.#style.colour ? new MarkdownInk() : null);
  }

  #written(message: OpenMessage, text: string): string {
    if (text === '' || message.written) return text;
    message.written = true;
    return this.#gap('say') + text;
  }

  // Ends the line of a message, and writes what waited for that.
  #close(): string {
    let out = '';
    if (this.#open !== null) {
      out += this.#written(this.#open, this.#open.wrapper.end());
      if (this.#open.written) out += '\n';
      this.#open = null;
    }
    const noise = this.#noise;
    this.#noise = [];
    return out + noise.map((line) => this.#block('work', line)).join('');
  }

  #showDetail(detail: EngineDetail): string {
    this.#addDetail(detail);
    return this.#showsDetails ? this.#showNoise(renderDetail(detail, this.#style)) : '';
  }

  // A turn may print without end: only the numbers are kept.
  #addDetail({ kind }: EngineDetail): void {
    this.#details = { ...this.#details, [kind]: (this.#details[kind] ?? 0) + 1 };
  }

  #showNoise(line: string): string {
    const between = this.#live ? this.#open === null : this.#pieces.size === 0;
    if (between) return this.#block('work', line);
    this.#noise.push(line);
    return this.#noise.length > MAX_WAITING_LINES ? this.#close() : '';
  }

  #showPlan(plan: FcmpData['assistant.plan']): string {
    const text = renderPlan(plan, this.#style);
    if (text === this.#lastPlan || text === '') return '';
    this.#lastPlan = text;
    return this.#block('work', text);
  }

  #endTurn(): string {
    let out = '';
    if (!this.#live) for (const [id, text] of this.#pieces) out += this.#stream(id, text) + this.#close();
    this.#pieces.clear();
    if (this.#envelope !== null) out += this.#stream(null, this.#envelope);
    this.#envelope = null;
    out += this.#close();
    if (!this.#showsDetails) out += this.#block('work', renderDetails(this.#details, this.#style));
    this.#details = {};
    if (this.#usage) out += this.#block('work', renderUsage(this.#usage, this.#style));
    this.#usage = null;
    return out;
  }

  #block(kind: Kind, text: string): string {
    if (text === '') return '';
    return `${this.#close()}${this.#gap(kind)}${text}\n`;
  }

  #gap(kind: Kind): string {
    const apart = this.#last !== null && !(kind === 'work' && this.#last === 'work');
    this.#last = kind;
    return apart ? '\n' : '';
  }
}

// What of the whole message the pieces have not shown; null when they showed something else.
function missingText(shown: string, whole: string, truncated: boolean): string | null {
  if (whole.startsWith(shown)) return whole.slice(shown.length);
  if (shown.trim() === whole.trim()) return '';
  return truncated && shown.startsWith(whole) ? '' : null;
}

// An object that is nothing but what an agent tells of its turn, perhaps in a fence.
function isEnvelope(text: string): boolean {
  const body = parseJson(text.trim().replace(/^```(?:json)?\s*([^]*?)\s*```$/, '$1'));
  return isObject(body) && (body['done'] === true || body['ask_user'] !== undefined);
}

function is<T extends FcmpType>(event: FcmpEvent, type: T): event is FcmpEvent & { readonly data: FcmpData[T] } {
  return event.type === type;
}
