// A dialogue that makes a reply out of what a person types, line by line. Every line gets an answer: more is needed, what
// is wrong with it, or what it means. Nothing is allowed by a slip: an approval takes only its own letters.
import type { Json } from '../kernel/json.js';
import type { Question } from './question-text.js';
import { tellJson } from './question-text.js';
import { oneLine } from './safe-text.js';

export type Given =
  | { readonly kind: 'more' }
  | { readonly kind: 'problem'; readonly message: string }
  | { readonly kind: 'reply'; readonly response: Json }
  | { readonly kind: 'finish' }
  | { readonly kind: 'later' }
  | { readonly kind: 'cancel' };

export interface Dialogue {
  // What stands before the cursor.
  prompt(): string;
  give(line: string): Given;
}

type Part = Pick<Question, 'kind' | 'prompt' | 'options' | 'default'>;
type Taken = { readonly value: Json } | { readonly problem: string };

const DECISIONS: Readonly<Record<string, string>> = {
  y: 'approve', yes: 'approve', approve: 'approve',
  a: 'approve_for_session', always: 'approve_for_session',
  n: 'decline', no: 'decline', decline: 'decline',
  c: 'cancel', cancel: 'cancel',
};
const PROMPT_COLUMNS = 48;

export function createDialogue(question: Question): Dialogue {
  const { fields = [] } = question;
  const parts: readonly Part[] = fields.length > 0 ? fields : [question];
  const answers: Json[] = [];
  // Lines that ended in a backslash.
  let begun: string[] = [];
  return {
    prompt() {
      const part = parts[answers.length];
      if (begun.length > 0 || !part) return '… ';
      const place = fields.length > 0 ? `${answers.length + 1}/${fields.length} ${oneLine(part.prompt, PROMPT_COLUMNS)} ` : '';
      return `${place}${hintOf(part)}> `;
    },
    give(line) {
      const command = begun.length === 0 && !/^\s/.test(line) ? commandOf(line.trim(), question) : null;
      if (command) return command;
      if (/(?<!\\)(?:\\\\)*\\$/.test(line)) {
        begun.push(line.slice(0, -1));
        return { kind: 'more' };
      }
      const text = [...begun, line].join('\n').trim();
      begun = [];
      const part = parts[answers.length];
      if (!part) return { kind: 'problem', message: 'the question is answered' };
      const taken = take(part, text);
      if ('problem' in taken) return { kind: 'problem', message: taken.problem };
      answers.push(taken.value);
      if (answers.length < parts.length) return { kind: 'more' };
      if (fields.length === 0) return { kind: 'reply', response: taken.value };
      return { kind: 'reply', response: Object.fromEntries(fields.map(({ id }, index) => [id, answers[index] ?? null])) };
    },
  };
}

function commandOf(line: string, { channel }: Question): Given | null {
  if (line === '/later') return { kind: 'later' };
  if (line === '/cancel') return { kind: 'cancel' };
  // A slip must not become the answer; with a blank before it, it is one.
  if (/^\/[a-z]+$/i.test(line) && line !== '/finish') return { kind: 'problem', message: `there is no ${line}: /later leaves the question waiting, ${channel === 'conversation' ? '/finish ends the conversation, ' : ''}/cancel ends the run; to answer with these words put a blank before them` };
  if (line !== '/finish') return null;
  if (channel === 'conversation') return { kind: 'finish' };
  return { kind: 'problem', message: 'the agent asked something: answer it, or /cancel the run; /later leaves it waiting' };
}

function hintOf({ kind, options, default: value }: Part): string {
  const fallback = hasDefault(value) ? `Enter: ${oneLine(tellJson(value), PROMPT_COLUMNS)} ` : '';
  if (kind === 'approval') return '[y]es, [a]lways, [n]o, [c]ancel ';
  if (options.length > 0) return `1${options.length > 1 ? `-${options.length}` : ''} or text ${fallback}`;
  return kind === 'confirm' ? `y/n ${fallback}` : fallback;
}

function take(part: Part, text: string): Taken {
  if (part.kind === 'approval') return takeDecision(text);
  if (text === '') {
    if (hasDefault(part.default)) return { value: part.default };
    return { problem: 'an answer is needed; /later leaves the question waiting, /cancel ends the run' };
  }
  if (part.options.length > 0) return takeOption(part, text);
  return takeWord(part, text);
}

function takeOption(part: Part, text: string): Taken {
  const number = /^\d+$/.test(text) ? Number(text) : null;
  const chosen = part.options[(number ?? 0) - 1] ?? part.options.find(({ label }) => label.trim().toLowerCase() === text.toLowerCase());
  if (chosen) return { value: chosen.value };
  if (number !== null) return { problem: `there is no option ${text}: choose 1 to ${part.options.length}, or say it in your own words` };
  return takeWord(part, text);
}

function takeWord({ kind }: Part, text: string): Taken {
  if (kind !== 'confirm') return { value: text };
  if (/^y(?:es)?$/i.test(text)) return { value: true };
  return { value: /^no?$/i.test(text) ? false : text };
}

// "a" is also an English word: with a note it needs a colon, lest "a moment please" allows everything.
function takeDecision(text: string): Taken {
  const match = /^([a-z]+)(?:(\s*[:,]\s*|\s+)(\S.*))?$/is.exec(text);
  const word = match?.[1]?.toLowerCase() ?? '';
  const note = match?.[3];
  const decision = Object.hasOwn(DECISIONS, word) ? DECISIONS[word] : undefined;
  const slip = word === 'a' && note !== undefined && !/[:,]/.test(match?.[2] ?? '');
  if (decision === undefined || slip) return { problem: 'y approves, a approves for the whole session, n declines, c cancels; a note may follow: "n because …", "a: …"' };
  return { value: note === undefined ? { decision } : { decision, note } };
}

// An engine that has no default may say so by null.
function hasDefault(value: Json | undefined): value is NonNullable<Json> {
  return value !== undefined && value !== null;
}
