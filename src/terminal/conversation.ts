// Renders a conversation for a terminal: takes events, returns the text to write. Messages appear while they arrive and
// are not repeated when they are complete. Other output of the engine is held back until the current message ends, so
// that it never splits a sentence. Messages, questions and outcomes are separated by blank lines; lines of work are
// not.
import type { FcmpData, FcmpEvent, FcmpType } from '../fcmp/event.js';
import { isObject, parseJson } from '../kernel/json.js';
import { readEngineDetail, splitDoneMarker, type DetailCounts, type EngineDetail } from '../fcmp/engine-details.js';
import {
  renderTurn,
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
import { terminalTexts } from './texts.js';
import { renderTool } from './tool-text.js';
import { addUsage, renderUsage, type Usage } from './usage-text.js';
import { Wrapper } from './wrap.js';

type Kind = 'say' | 'work';
interface OpenMessage {
  readonly id: string | null;
  readonly wrapper: Wrapper;
  written: boolean;
}

// Bounds the held-back lines: an engine may print warnings without end during one message.
const MAX_WAITING_LINES = 100;

export interface ViewOptions {
  // true: pieces of messages are written as they arrive. false: each message is written when it is complete.
  readonly live: boolean;
  // The number of lines of an approval to show first; the caller shows the rest page by page. Without it, all lines are
  // shown.
  readonly firstPage?: () => number;
  // Shows the engine's own output and warnings line by line instead of one summary per turn.
  readonly details?: boolean;
}

export class ConversationView {
  readonly #style: Style;
  readonly #live: boolean;
  readonly #firstPage: () => number;
  readonly #showsDetails: boolean;
  // Counts of other engine output in this turn.
  #details: DetailCounts = {};
  #activity: Activity = NO_ACTIVITY;
  #last: Kind | null = null;
  #open: OpenMessage | null = null;
  // The pieces of incomplete messages.
  readonly #pieces = new Map<string | null, string>();
  #noise: string[] = [];
  #usage: Usage | null = null;
  #lastMessage: string | null = null;
  // A message for Parley, not for people: its content is shown as the question or the result. Shown as it is if neither
  // follows.
  #envelope: string | null = null;
  #lastPlan = '';

  constructor(style: Style, { live, firstPage = () => Infinity, details = false }: ViewOptions) {
    this.#style = style;
    this.#live = live;
    this.#firstPage = firstPage;
    this.#showsDetails = details;
  }

  // The current activity of the engine, for progressLine.
  get activity(): Activity {
    return this.#activity;
  }

  push(event: FcmpEvent): string {
    const before = this.#activity;
    this.#activity = nextActivity(before, event);
    return this.#show(event, before);
  }

  // Call after a pause of a tenth of a second or more: an incomplete word is written as it is.
  pause(): string {
    return this.#open === null ? '' : this.#written(this.#open, this.#open.wrapper.pause());
  }

  // Call at the end: writes everything that was held back.
  end(): string {
    return this.#endTurn();
  }

  #show(event: FcmpEvent, before: Activity): string {
    const style = this.#style;
    if (is(event, 'assistant.message.delta')) return this.#addPiece(event.data);
    if (is(event, 'assistant.message.final')) return this.#completeMessage(event.data);
    if (is(event, 'assistant.tool.completed')) {
      const tool = before.tools.find(({ key }) => key === toolKey(event.data));
      const elapsed = tool ? Date.parse(event.ts) - tool.since : 0;
      const facts = { subject: tool?.what ?? '', elapsedMs: elapsed > 0 ? elapsed : null };
      return this.#block('work', renderTool(event.data, facts, style));
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

  // Events between turns. Writes the held-back output of the turn first.
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
    return ended + this.#block('say', renderTurn(event.attempt_number, style));
  }

  #renderQuestion(question: FcmpData['user.input.required']): string {
    const text = renderQuestion(question, this.#style, this.#lastMessage);
    return question.kind === 'approval' ? text.split('\n').slice(0, this.#firstPage()).join('\n') : text;
  }

  #addPiece({ message_id: id, text }: FcmpData['assistant.message.delta']): string {
    this.#pieces.set(id, (this.#pieces.get(id) ?? '') + text);
    return this.#live ? this.#stream(id, text) : '';
  }

  #completeMessage({ message_id: id, text, truncated = false }: FcmpData['assistant.message.final']): string {
    const pieces = this.#pieces.get(id) ?? '';
    this.#pieces.delete(id);
    this.#lastMessage = text;
    // A message that arrived in pieces was shown in pieces, and looks the same when it is not live.
    if (pieces === '' && isEnvelope(text)) {
      this.#envelope = text;
      return '';
    }
    const { text: said, marker } = pieces === '' ? splitDoneMarker(text) : { text, marker: null };
    if (marker !== null) this.#addDetail({ kind: 'done', text: marker });
    const missing = missingText(this.#live ? pieces : '', { text: said, truncated });
    const shown = missing === null ? this.#close() + this.#stream(id, said) : this.#stream(id, missing);
    return (
      shown + this.#close() + (truncated ? this.#block('work', paint(this.#style, 'dim', terminalTexts().cutOff)) : '')
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

  // Ends the line of a message and writes the held-back lines.
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

  // Keeps only counts, because a turn may print without end.
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

// Returns the rest of the message after the text that the pieces have shown; null if they showed another text.
function missingText(
  shown: string,
  { text, truncated }: { readonly text: string; readonly truncated: boolean },
): string | null {
  if (text.startsWith(shown)) return text.slice(shown.length);
  if (shown.trim() === text.trim()) return '';
  return truncated && shown.startsWith(text) ? '' : null;
}

// Whether a message is only the JSON object that reports the end of a turn, perhaps in a code fence.
function isEnvelope(text: string): boolean {
  const json = text.trim().replace(/^```(?:json)?\s*([^]*?)\s*```$/, '$1');
  // Most messages are prose: parsing each of them costs more than showing it.
  const body = json.startsWith('{') ? parseJson(json) : undefined;
  return isObject(body) && (body['done'] === true || body['ask_user'] !== undefined);
}

function is<T extends FcmpType>(event: FcmpEvent, type: T): event is FcmpEvent & { readonly data: FcmpData[T] } {
  return event.type === type;
}
