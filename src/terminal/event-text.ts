// One event of a conversation as text, for all but the streamed messages. A text has no line end at its end.
import { textWidth } from './text-width.js';
import { summarizeDetails, type DetailCounts, type EngineDetail } from '../fcmp/engine-details.js';
import type { FcmpData } from '../fcmp/event.js';
import { asString, isObject, type Json } from '../kernel/json.js';
import { tellJson } from './question-text.js';
import { exactLine, oneLine } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';
import { wrapText } from './wrap.js';

// A result may be a whole document; the journal has all of it.
const RESULT_LINES = 24;

export function renderPerson(text: string, style: Style): string {
  return wrapText(text, style.width, { first: paint(style, 'cyan', '> '), rest: '  ' });
}

export function renderHeader({ engine, execution_mode: mode }: FcmpData['conversation.started'], style: Style): string {
  return paint(style, 'dim', oneLine(`${engine} · ${mode}`, style.width));
}

export function renderAttempt(attempt: number, style: Style): string {
  return paint(style, 'dim', oneLine(`── attempt ${attempt} ──`, style.width));
}

export function renderReasoning(text: string, style: Style): string {
  return paint(style, 'dim', `~ ${oneLine(text, style.width - 2)}`);
}

export function renderPlan({ items }: FcmpData['assistant.plan'], style: Style): string {
  return items
    .map(({ text, done }) => `${done ? paint(style, 'green', '[x]') : '[ ]'} ${oneLine(text, style.width - 4)}`)
    .join('\n');
}

const CHANGES: Readonly<Record<FcmpData['artifact.file.changed']['kind'], readonly [string, Ink]>> = {
  add: ['added', 'green'],
  update: ['changed', 'yellow'],
  delete: ['deleted', 'red'],
  unknown: ['touched', 'yellow'],
};

export function renderFile({ path, kind }: FcmpData['artifact.file.changed'], style: Style): string {
  const [word, ink] = CHANGES[kind];
  return `${paint(style, ink, word)} ${exactLine(path, style.width - word.length - 1, 'end')}`;
}

const DECIDED: Readonly<Record<string, readonly [string, Ink, string]>> = {
  approve: ['✓', 'green', 'approved'],
  approve_for_session: ['✓', 'green', 'approved for the session'],
  decline: ['⊘', 'yellow', 'declined'],
  cancel: ['⊘', 'yellow', 'declined and stopped'],
};

export function renderReply(reply: FcmpData['interaction.reply.accepted'], style: Style): string {
  const { response = null, finish, actor, review } = reply;
  const by = actor ? ` by ${actor.name}` : '';
  if (finish) return renderMarked('✓', 'green', `finished${by}`, style);
  const [mark, ink, word] = DECIDED[decisionOf(response) ?? ''] ?? [];
  if (mark === undefined || ink === undefined) {
    return renderMarked('✓', 'green', `answered${by}: ${tellResponse(response)}`, style);
  }
  const note = isObject(response) ? (asString(response.note) ?? '') : '';
  const unread = review === 'unread' ? ', not all of it was shown' : '';
  return renderMarked(mark, ink, `${word}${by}${unread}${note === '' ? '' : `: ${note}`}`, style);
}

function decisionOf(response: Json): string | undefined {
  return isObject(response) ? asString(response.decision) : undefined;
}

export function renderDecision(
  { policy, response }: FcmpData['interaction.auto_decide.timeout'],
  style: Style,
): string {
  const words = `nobody answered in time, decided by the policy ${policy}`;
  return renderMarked(
    '!',
    'yellow',
    response === undefined || response === null ? words : `${words}: ${tellResponse(response)}`,
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
  const head = renderMarked('✓', 'green', 'done', style);
  if (result === undefined || result === null) return head;
  const brief = tellJson(result);
  const text =
    typeof result === 'string' || textWidth(brief) <= style.width - 2 ? brief : JSON.stringify(result, null, 2);
  const lines = wrapText(text, style.width, { first: '  ', rest: '  ' }).split('\n');
  const left = lines.length - RESULT_LINES;
  return [
    head,
    ...lines.slice(0, RESULT_LINES),
    ...(left > 0 ? [paint(style, 'dim', oneLine(`  … ${left} more lines`, style.width))] : []),
  ].join('\n');
}

export function renderFailed({ error }: FcmpData['conversation.failed'], style: Style): string {
  const details = Object.entries(error.details ?? {}).map(([name, value]) =>
    paint(style, 'dim', `  ${oneLine(`${name}: ${tellJson(value)}`, style.width - 2)}`),
  );
  return [
    renderMarked('✗', 'red', `failed: ${error.code}`, style),
    wrapText(error.message, style.width, { first: '  ', rest: '  ' }),
    ...details,
  ].join('\n');
}

export function renderCanceled({ actor }: FcmpData['conversation.canceled'], style: Style): string {
  return renderMarked('■', 'yellow', `canceled${actor ? ` by ${actor.name}` : ''}`, style);
}

export function renderDetail({ kind, text }: EngineDetail, style: Style): string {
  return paint(style, 'dim', oneLine(kind === 'warning' ? `! ${text}` : `${kind} | ${text}`, style.width));
}

// Empty where there are none.
export function renderDetails(counts: DetailCounts, style: Style): string {
  const summary = summarizeDetails(counts);
  return summary === '' ? '' : paint(style, 'dim', oneLine(`· engine details: ${summary}`, style.width));
}

function renderMarked(mark: string, ink: Ink, text: string, style: Style): string {
  return wrapText(text, style.width, { first: paint(style, ink, `${mark} `), rest: '  ' });
}
