// A dialogue that makes a reply out of the lines that a person types. Each line returns a result: more is needed, what
// is wrong with it, or what it means. Nothing is approved by a slip: an approval takes only its own letters, and one
// that was not shown whole is approved only by a word that says so.
import { isObject, type Json } from '../kernel/json.js';
import { atPlace, chooseOption, type Choice } from './choose-option.js';
import type { Question } from './question-text.js';
import { tellJson } from './question-text.js';
import { exactLine, oneLine } from './safe-text.js';

export type Review = 'seen' | 'unread';

export type Given =
  | { readonly kind: 'more' }
  | { readonly kind: 'problem'; readonly message: string }
  // `sent` says in words what the response is.
  | { readonly kind: 'reply'; readonly response: Json; readonly sent: string; readonly review?: Review }
  // The next page of what is to be approved is wanted.
  | { readonly kind: 'page' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'later' }
  | { readonly kind: 'cancel' };

export interface Dialogue {
  // What stands before the cursor.
  prompt(): string;
  give(line: string): Given;
}

export interface DialogueOptions {
  // Whether there is more to be shown of what is to be approved.
  readonly hasMore?: () => boolean;
}

type Part = Pick<Question, 'kind' | 'prompt' | 'options' | 'default'>;
type Read = { readonly value: Json; readonly sent: string } | { readonly problem: string };

// The same letters as in the console; those of earlier versions stay.
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
const LETTERS = 'y approves, s approves for the whole session, n declines, c declines and stops';
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
      if (part.kind === 'approval' && hasMore())
        return 'Enter: next page, y!: approve unread, [n]o, [c] no and stop > ';
      const place =
        fields.length > 0 ? `${answers.length + 1}/${fields.length} ${oneLine(part.prompt, PROMPT_COLUMNS)} ` : '';
      const ways = question.channel === 'conversation' ? '/finish ends it, /later leaves it ' : '';
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
      if (!part) return { kind: 'problem', message: 'the question is answered' };
      if (part.kind === 'approval' && fields.length === 0) return decide(text, hasMore());
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

// The answer by the place of an option, counted from 1.
export function answerByPlace({ options }: Pick<Question, 'options'>, place: number): Read {
  return readChoice(atPlace(options, place), options.length) ?? { problem: 'this question has no options' };
}

function commandOf(line: string, { channel }: Question): Given | null {
  if (line === '/later') return { kind: 'later' };
  if (line === '/cancel') return { kind: 'cancel' };
  // A slip must not become the answer; with a blank before it, it is one.
  if (/^\/[a-z]+$/i.test(line) && line !== '/finish') {
    const finish = channel === 'conversation' ? '/finish ends the conversation, ' : '';
    const commands = `/later leaves the question waiting, ${finish}/cancel ends the run`;
    return {
      kind: 'problem',
      message: `there is no ${line}: ${commands}; to answer with these words put a blank before them`,
    };
  }
  if (line !== '/finish') return null;
  if (channel === 'conversation') return { kind: 'finish' };
  return {
    kind: 'problem',
    message: 'the agent asked something: answer it, or /cancel the run; /later leaves it waiting',
  };
}

function hintOf({ kind, options, default: value }: Part): string {
  const fallback = hasDefault(value) ? `Enter: ${exactLine(tellJson(value), PROMPT_COLUMNS)} ` : '';
  if (kind === 'approval') return '[y]es, for the [s]ession, [n]o, [c] no and stop ';
  if (options.length > 0) return `1${options.length > 1 ? `-${options.length}` : ''} or text ${fallback}`;
  return kind === 'confirm' ? `y/n ${fallback}` : fallback;
}

function readAnswer(part: Part, text: string): Read {
  if (part.kind === 'approval') return readDecision(text);
  if (text === '') {
    if (hasDefault(part.default)) return { value: part.default, sent: `${shortly(part.default)} (the default)` };
    return { problem: 'an answer is needed; /later leaves the question waiting, /cancel ends the run' };
  }
  const chosen = part.options.length > 0 ? readChoice(chooseOption(part.options, text), part.options.length) : null;
  return chosen ?? readWord(part, text);
}

// Null: the text is no option.
function readChoice(choice: Choice, count: number): Read | null {
  switch (choice.kind) {
    case 'option': {
      const {
        place,
        option: { label, value },
      } = choice;
      const name = label === value ? '' : `, ${exactLine(label, SENT_COLUMNS)}`;
      return { value, sent: `${shortly(value)} (option ${place}${name})` };
    }
    case 'ambiguous':
      return { problem: explainReadings(choice.readings) };
    case 'none':
      return { problem: `there is no option ${choice.number}: choose 1 to ${count}, or say it in your own words` };
    case 'text':
      return null;
  }
}

function explainReadings(readings: Extract<Choice, { kind: 'ambiguous' }>['readings']): string {
  const each = readings.map(
    ({ place, option: { label } }) => `option ${place}, "${exactLine(label, SENT_COLUMNS)}" (type #${place})`,
  );
  return `that can mean ${each.join(' or ')}: nothing was sent`;
}

function readWord({ kind }: Part, text: string): Read {
  const value = kind !== 'confirm' ? text : /^y(?:es)?$/i.test(text) ? true : /^no?$/i.test(text) ? false : text;
  return { value, sent: shortly(value) };
}

function shortly(value: Json): string {
  return exactLine(JSON.stringify(value), SENT_COLUMNS);
}

function decide(text: string, hasMore: boolean): Given {
  if (hasMore && text === '') return { kind: 'page' };
  const isUnread = /^[a-z]+!/i.test(text);
  const read = readDecision(text.replace(/^([a-z]+)!/i, '$1'));
  if ('problem' in read) return { kind: 'problem', message: read.problem };
  const { decision } = read.value as { readonly decision: string };
  const isApproval = decision === 'approve' || decision === 'approve_for_session';
  if (hasMore && isApproval && !isUnread) {
    const ways = 'Enter shows the next page; y! approves without reading';
    return { kind: 'problem', message: `you have not seen all of it: ${ways}` };
  }
  return { kind: 'reply', response: read.value, sent: read.sent, review: hasMore ? 'unread' : 'seen' };
}

// "a" is also an English word: with a note it needs a colon, lest "a moment please" allows everything. A note begins on
// the same line: a pasted text whose first line is a letter decides nothing.
function readDecision(text: string): Read {
  const match = /^([a-z]+)(?:([ \t]*[:,][ \t]*|[ \t]+)(\S.*))?$/is.exec(text);
  const word = match?.[1]?.toLowerCase() ?? '';
  const note = match?.[3];
  const decision = Object.hasOwn(DECISIONS, word) ? DECISIONS[word] : undefined;
  const isSlip = word === 'a' && note !== undefined && !/[:,]/.test(match?.[2] ?? '');
  if (decision === undefined || isSlip) return { problem: `${LETTERS}; a note may follow: "n because …", "s: …"` };
  return { value: note === undefined ? { decision } : { decision, note }, sent: decision.replaceAll('_', ' ') };
}

// An engine that has no default may say so by null.
function hasDefault(value: Json | undefined): value is NonNullable<Json> {
  return value !== undefined && value !== null;
}

// What a person is told once the answer was accepted. A declined approval never looks like one that was approved.
export function confirmSent({ response, sent }: { readonly response: Json; readonly sent: string }): string {
  const decision = isObject(response) ? response.decision : undefined;
  if (decision === 'decline') return 'You declined this. The agent has been told.';
  if (decision === 'cancel') return 'You declined this and stopped the agent. It has been told.';
  return `Sent: ${sent}`;
}
