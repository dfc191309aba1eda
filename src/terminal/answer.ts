// A dialogue that turns typed lines into a reply. Each line returns a result: more input is needed, a problem, or a
// decision. Prevents approval by mistake: an approval accepts only its own letters, and one that was not shown
// completely needs an explicit `!`.
import { isObject, type Json } from '../kernel/json.js';
import { atPlace, chooseOption, type Choice } from './choose-option.js';
import type { Question } from './question-text.js';
import { tellJson } from './question-text.js';
import { exactLine, oneLine } from './safe-text.js';
import { terminalTexts } from './texts.js';

type Review = 'seen' | 'unread';

export type DialogueResult =
  | { readonly kind: 'more' }
  | { readonly kind: 'problem'; readonly message: string }
  // `sent` describes the response in words.
  | { readonly kind: 'reply'; readonly response: Json; readonly sent: string; readonly review?: Review }
  // The person asked for the next page of the approval.
  | { readonly kind: 'page' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'later' }
  | { readonly kind: 'cancel' };

export interface Dialogue {
  // The text before the cursor.
  prompt(): string;
  give(line: string): DialogueResult;
}

export interface DialogueOptions {
  // Whether a part of the approval has not been shown yet.
  readonly hasMore?: () => boolean;
}

type Part = Pick<Question, 'kind' | 'prompt' | 'options' | 'default'>;
type Read = { readonly value: Json; readonly sent: string } | { readonly problem: string };

// The same letters as in the console, plus those of earlier versions.
const DECISIONS: Readonly<Record<string, string>> = {
  y: 'approve',
  yes: 'approve',
  approve: 'approve',
  s: 'approve_for_session',
  session: 'approve_for_session',
  a: 'approve_for_session',
  always: 'approve_for_session',
  n: 'decline',
  no: 'decline',
  decline: 'decline',
  c: 'cancel',
  cancel: 'cancel',
};
const PROMPT_COLUMNS = 48;
const SENT_COLUMNS = 60;

export function createDialogue(question: Question, { hasMore = () => false }: DialogueOptions = {}): Dialogue {
  const { fields = [] } = question;
  const parts: readonly Part[] = fields.length > 0 ? fields : [question];
  const answers: Json[] = [];
  // Lines that ended in a backslash.
  let lines: string[] = [];
  return {
    prompt() {
      const part = parts[answers.length];
      if (lines.length > 0 || !part) return '… ';
      if (part.kind === 'approval' && hasMore()) return terminalTexts().approvalPagePrompt;
      const place =
        fields.length > 0 ? `${answers.length + 1}/${fields.length} ${oneLine(part.prompt, PROMPT_COLUMNS)} ` : '';
      const ways = question.channel === 'conversation' ? terminalTexts().conversationPrompt : '';
      return `${place}${ways}${hintOf(part)}> `;
    },
    give(line) {
      const command = lines.length === 0 && !/^\s/.test(line) ? commandOf(line.trim(), question) : null;
      if (command) return command;
      if (/(?<!\\)(?:\\\\)*\\$/.test(line)) {
        lines.push(line.slice(0, -1));
        return { kind: 'more' };
      }
      const text = [...lines, line].join('\n').trim();
      lines = [];
      const part = parts[answers.length];
      if (!part) return { kind: 'problem', message: terminalTexts().alreadyAnswered };
      if (part.kind === 'approval' && fields.length === 0) return decide(text, { hasMore: hasMore() });
      const read = readAnswer(part, text);
      if ('problem' in read) return { kind: 'problem', message: read.problem };
      answers.push(read.value);
      if (answers.length < parts.length) return { kind: 'more' };
      if (fields.length === 0) return { kind: 'reply', response: read.value, sent: read.sent };
      const response = Object.fromEntries(fields.map(({ id }, index) => [id, answers[index] ?? null]));
      return { kind: 'reply', response, sent: exactLine(JSON.stringify(response), SENT_COLUMNS) };
    },
  };
}

// Returns the answer for the option at a position, counted from 1.
export function answerByPlace({ options }: Pick<Question, 'options'>, place: number): Read {
  return readChoice(atPlace(options, place), options.length) ?? { problem: terminalTexts().noOptions };
}

function commandOf(line: string, { channel }: Question): DialogueResult | null {
  if (line === '/later') return { kind: 'later' };
  if (line === '/cancel') return { kind: 'cancel' };
  // A mistyped command, or a question mark that asks for help, must not become the answer. With a space before it, the
  // text is sent.
  if (/^(?:\/[a-z]*|\?)$/i.test(line) && line !== '/finish') {
    const texts = terminalTexts();
    const commands = channel === 'conversation' ? texts.slashCommandsWithFinish : texts.slashCommands;
    return { kind: 'problem', message: texts.unknownSlashCommand(line, commands) };
  }
  if (line !== '/finish') return null;
  if (channel === 'conversation') return { kind: 'finish' };
  return { kind: 'problem', message: terminalTexts().finishRefused };
}

function hintOf({ kind, options, default: value }: Part): string {
  const texts = terminalTexts();
  const fallback = hasDefault(value) ? texts.defaultPrompt(exactLine(tellJson(value), PROMPT_COLUMNS)) : '';
  if (kind === 'approval') return texts.approvalPrompt;
  if (options.length > 0)
    return `${texts.optionPrompt(`1${options.length > 1 ? `-${options.length}` : ''}`)}${fallback}`;
  return kind === 'confirm' ? `y/n ${fallback}` : fallback;
}

function readAnswer(part: Part, text: string): Read {
  if (part.kind === 'approval') return readDecision(text);
  if (text === '') {
    if (hasDefault(part.default))
      return { value: part.default, sent: terminalTexts().defaultSent(shortly(part.default)) };
    return { problem: terminalTexts().answerNeeded };
  }
  const chosen = part.options.length > 0 ? readChoice(chooseOption(part.options, text), part.options.length) : null;
  return chosen ?? readWord(part, text);
}

// Returns null if the text is not an option.
function readChoice(choice: Choice, count: number): Read | null {
  switch (choice.kind) {
    case 'option': {
      const {
        place,
        option: { label, value },
      } = choice;
      const texts = terminalTexts();
      const sent =
        label === value
          ? texts.optionSent(shortly(value), place)
          : texts.labelledOptionSent(shortly(value), place, exactLine(label, SENT_COLUMNS));
      return { value, sent };
    }
    case 'ambiguous':
      return { problem: explainReadings(choice.readings) };
    case 'none':
      return { problem: terminalTexts().noSuchOption(choice.number, count) };
    case 'text':
      return null;
  }
}

function explainReadings(readings: Extract<Choice, { kind: 'ambiguous' }>['readings']): string {
  const texts = terminalTexts();
  const each = readings.map(({ place, option: { label } }) => texts.reading(place, exactLine(label, SENT_COLUMNS)));
  return texts.ambiguous(each.join(texts.or));
}

function readWord({ kind }: Part, text: string): Read {
  const value = kind !== 'confirm' ? text : /^y(?:es)?$/i.test(text) ? true : /^no?$/i.test(text) ? false : text;
  return { value, sent: shortly(value) };
}

function shortly(value: Json): string {
  return exactLine(JSON.stringify(value), SENT_COLUMNS);
}

function decide(text: string, { hasMore }: { readonly hasMore: boolean }): DialogueResult {
  if (hasMore && text === '') return { kind: 'page' };
  const isUnread = /^[a-z]+!/i.test(text);
  const read = readDecision(text.replace(/^([a-z]+)!/i, '$1'));
  if ('problem' in read) return { kind: 'problem', message: read.problem };
  const { decision } = read.value as { readonly decision: string };
  const isApproval = decision === 'approve' || decision === 'approve_for_session';
  if (hasMore && isApproval && !isUnread) {
    return { kind: 'problem', message: terminalTexts().notAllSeen };
  }
  return { kind: 'reply', response: read.value, sent: read.sent, review: hasMore ? 'unread' : 'seen' };
}

// "a" is also an English word, so with a note it needs a colon: "a moment please" must not approve everything. A note
// starts on the same line: a pasted text whose first line is a letter decides nothing.
function readDecision(text: string): Read {
  const match = /^([a-z]+)(?:([ \t]*[:,][ \t]*|[ \t]+)(\S.*))?$/is.exec(text);
  const word = match?.[1]?.toLowerCase() ?? '';
  const note = match?.[3];
  const decision = Object.hasOwn(DECISIONS, word) ? DECISIONS[word] : undefined;
  const isSlip = word === 'a' && note !== undefined && !/[:,]/.test(match?.[2] ?? '');
  if (decision === undefined || isSlip) return { problem: terminalTexts().approvalLetters };
  return {
    value: note === undefined ? { decision } : { decision, note },
    sent: terminalTexts().decisions[decision] ?? decision,
  };
}

// Engines may send null for no default.
function hasDefault(value: Json | undefined): value is NonNullable<Json> {
  return value !== undefined && value !== null;
}

// The confirmation after a reply was accepted. A declined approval never looks like an approved one.
export function confirmSent({ response, sent }: { readonly response: Json; readonly sent: string }): string {
  const decision = isObject(response) ? response.decision : undefined;
  if (decision === 'decline') return terminalTexts().declined;
  if (decision === 'cancel') return terminalTexts().declinedAndStopped;
  return terminalTexts().sent(sent);
}
