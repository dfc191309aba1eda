// Renders one event of a conversation, except streamed messages, as text without a final line end.
import type { ExplainedError } from '../messages/explain-error.js';
import { textWidth } from './text-width.js';
import type { DetailCounts, EngineDetail } from '../fcmp/engine-details.js';
import type { FcmpData } from '../fcmp/event.js';
import { asString, isObject, type Json } from '../kernel/json.js';
import { tellJson } from './question-text.js';
import { exactLine, oneLine } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';
import { explainFailure, terminalTexts, type TerminalTexts } from './texts.js';
import { wrapText } from './wrap.js';

// A result may be a whole document; the journal has all of it, so the terminal shows the beginning.
const RESULT_LINES = 24;

export function renderPerson(text: string, style: Style): string {
  return wrapText(text, style.width, { first: paint(style, 'cyan', '> '), rest: '  ' });
}

export function renderHeader({ engine, execution_mode: mode }: FcmpData['conversation.started'], style: Style): string {
  return paint(style, 'dim', oneLine(`${engine} · ${terminalTexts().mode[mode] ?? mode}`, style.width));
}

export function renderTurn(turn: number, style: Style): string {
  return paint(style, 'dim', oneLine(`── ${terminalTexts().turn(turn)} ──`, style.width));
}

export function renderReasoning(text: string, style: Style): string {
  return paint(style, 'dim', `~ ${oneLine(text, style.width - 2)}`);
}

export function renderPlan({ items }: FcmpData['assistant.plan'], style: Style): string {
  return items
    .map(({ text, done }) => `${done ? paint(style, 'green', '[x]') : '[ ]'} ${oneLine(text, style.width - 4)}`)
    .join('\n');
}

const CHANGE_INKS: Readonly<Record<FcmpData['artifact.file.changed']['kind'], Ink>> = {
  add: 'green',
  update: 'yellow',
  delete: 'red',
  unknown: 'yellow',
};

export function renderFile({ path, kind }: FcmpData['artifact.file.changed'], style: Style): string {
  const word = terminalTexts().fileChanges[kind];
  return `${paint(style, CHANGE_INKS[kind], word)} ${exactLine(path, style.width - textWidth(word) - 1, 'end')}`;
}

type Mark = readonly [sign: string, ink: Ink];

const DONE: Mark = ['✓', 'green'];
const DECLINED: Mark = ['⊘', 'yellow'];
const DECISION_MARKS: Readonly<Record<string, Mark>> = {
  approve: DONE,
  approve_for_session: DONE,
  decline: DECLINED,
  cancel: DECLINED,
};

export function renderReply(reply: FcmpData['interaction.reply.accepted'], style: Style): string {
  const { response = null, finish, actor, review } = reply;
  const texts = terminalTexts();
  if (finish) return renderMarked(DONE, byActor(texts.finished, actor), style);
  const decision = decisionOf(response) ?? '';
  const mark = DECISION_MARKS[decision];
  if (mark === undefined)
    return renderMarked(DONE, texts.withAnswer(byActor(texts.answered, actor), tellResponse(response)), style);
  const note = isObject(response) ? (asString(response.note) ?? '') : '';
  const unread = review === 'unread' ? texts.notAllShown : '';
  const decided = byActor(texts.decided[decision] ?? decision, actor);
  return renderMarked(mark, note === '' ? `${decided}${unread}` : texts.withAnswer(`${decided}${unread}`, note), style);
}

function byActor(text: string, actor: { readonly name: string } | undefined): string {
  return actor ? terminalTexts().by(text, actor.name) : text;
}

function decisionOf(response: Json): string | undefined {
  return isObject(response) ? asString(response.decision) : undefined;
}

export function renderDecision(
  { policy, response }: FcmpData['interaction.auto_decide.timeout'],
  style: Style,
): string {
  const { decidedByPolicy, withAnswer } = terminalTexts();
  const words = decidedByPolicy(policy);
  return renderMarked(
    ['!', 'yellow'],
    response === undefined || response === null ? words : withAnswer(words, tellResponse(response)),
    style,
  );
}

function tellResponse(response: Json): string {
  if (!isObject(response)) return tellJson(response);
  const decision = asString(response.decision);
  if (decision !== undefined) return [decision, asString(response.note) ?? ''].filter((part) => part !== '').join(', ');
  return Object.entries(response)
    .map(([id, value]) => `\n${id}: ${tellJson(value)}`)
    .join('');
}

export function renderCompleted({ result }: FcmpData['conversation.completed'], style: Style): string {
  const head = renderMarked(DONE, terminalTexts().done, style);
  if (result === undefined || result === null) return head;
  const brief = tellJson(result);
  const text =
    typeof result === 'string' || textWidth(brief) <= style.width - 2 ? brief : JSON.stringify(result, null, 2);
  const lines = wrapText(text, style.width, { first: '  ', rest: '  ' }).split('\n');
  const left = lines.length - RESULT_LINES;
  return [
    head,
    ...lines.slice(0, RESULT_LINES),
    ...(left > 0 ? [paint(style, 'dim', oneLine(terminalTexts().moreLines(left), style.width))] : []),
  ].join('\n');
}

export function renderFailed({ error }: FcmpData['conversation.failed'], style: Style): string {
  const details = Object.entries(error.details ?? {}).map(([name, value]) =>
    paint(style, 'dim', `  ${oneLine(`${name}: ${tellJson(value)}`, style.width - 2)}`),
  );
  return [
    renderMarked(['✗', 'red'], terminalTexts().failed(error.code), style),
    wrapText(explainFailure(error as ExplainedError), style.width, { first: '  ', rest: '  ' }),
    ...details,
  ].join('\n');
}

export function renderCanceled({ actor }: FcmpData['conversation.canceled'], style: Style): string {
  return renderMarked(['■', 'yellow'], byActor(terminalTexts().canceled, actor), style);
}

export function renderDetail({ kind, text }: EngineDetail, style: Style): string {
  return paint(style, 'dim', oneLine(kind === 'warning' ? `! ${text}` : `${kind} | ${text}`, style.width));
}

// Returns an empty string if there are none.
export function renderDetails(counts: DetailCounts, style: Style): string {
  const texts = terminalTexts();
  const summary = summarizeDetails(counts, texts);
  return summary === '' ? '' : paint(style, 'dim', oneLine(texts.engineDetails(summary), style.width));
}

function summarizeDetails(
  { stderr = 0, stdout = 0, warning = 0, done = 0 }: DetailCounts,
  texts: TerminalTexts,
): string {
  return [
    ...(stderr > 0 ? [texts.stderrLines(stderr)] : []),
    ...(stdout > 0 ? [texts.stdoutLines(stdout)] : []),
    ...(warning > 0 ? [texts.warnings(warning)] : []),
    ...(done > 0 ? [texts.doneMarker] : []),
  ].join(', ');
}

function renderMarked([sign, ink]: Mark, text: string, style: Style): string {
  return wrapText(text, style.width, { first: paint(style, ink, `${sign} `), rest: '  ' });
}
