// A question as a person reads it: the prompt, what an approval is about, numbered options, fields, the default. The
// numbers are the ones that the dialogue (answer.ts) takes. Nothing that is approved is left out: every line of every
// change is shown, and each invisible character by its name, with a warning above.
import type { FcmpData } from '../fcmp/event.js';
import { readFileChanges, summarizeChanges, type ChangedLine, type FileChange } from '../kernel/file-changes.js';
import type { Json } from '../kernel/json.js';
import { nameInLine, warnOfNames } from '../kernel/visible-text.js';
import { safeText } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';
import { showExact, wrapExact, wrapShown } from './wrap-exact.js';
import { wrapText } from './wrap.js';

type Asked = FcmpData['user.input.required'];
type Option = Asked['options'][number];

export type Question = Pick<Asked, 'kind' | 'prompt' | 'options' | 'fields' | 'default' | 'channel' | 'action'> & {
  // It waits for longer than was agreed.
  readonly overdue?: boolean | undefined;
};

export function renderQuestion(question: Question, style: Style, lastMessage: string | null = null): string {
  const fields = question.fields ?? [];
  const changes = readFileChanges(question.action);
  const prompt = paintLines(style, 'bold', renderPrompt(question, style, lastMessage));
  const lines = [...warningLines(question, changes, style), prompt, ...changeLines(changes, style)];
  // An approval is answered by its letters.
  const options = question.kind === 'approval' ? [] : question.options;
  lines.push(...optionLines(options, style, '  '), ...defaultLine(question.default, style, '  '));
  for (const [index, field] of fields.entries()) {
    const indent = ' '.repeat(`${fields.length}. `.length + 2);
    const number = `  ${index + 1}.`.padEnd(indent.length);
    lines.push(wrapText(field.prompt, style.width, { first: number, rest: indent }));
    lines.push(...optionLines(field.options, style, indent), ...defaultLine(field.default, style, indent));
  }
  const margins = { first: '  ', rest: '  ' };
  const overdue = wrapText('overdue: it waits for longer than agreed', style.width, margins);
  if (question.overdue) lines.push(paintLines(style, 'red', overdue));
  return lines.join('\n');
}

// What is approved is shown to the letter; other questions are prose.
function renderPrompt(question: Question, style: Style, lastMessage: string | null): string {
  const margins = { first: paint(style, 'yellow', '? '), rest: '  ' };
  const prompt = promptOf(question, lastMessage);
  const wrap = question.kind === 'approval' ? wrapExact : wrapText;
  return wrap(prompt, style.width, margins);
}

function warningLines(question: Question, changes: readonly FileChange[], style: Style): string[] {
  const { kind, prompt, options, fields = [], default: value } = question;
  const all = [...options, ...fields.flatMap((field) => field.options)];
  const warning = warnOfNames([
    kind === 'approval' ? showExact(prompt) : safeText(prompt),
    ...changes.flatMap(({ path, moveTo = '' }) => [nameInLine(path), nameInLine(moveTo)]),
    ...changes.flatMap(({ lines }) => lines.map(({ text }) => showExact(text))),
    ...all.flatMap(({ label, description = '' }) => [showExact(label), showExact(description)]),
    ...fields.map((field) => safeText(field.prompt)),
    ...[value, ...fields.map((field) => field.default)].map((each) => (each == null ? '' : showExact(tellJson(each)))),
  ]);
  if (warning === null) return [];
  return [paintLines(style, 'red', wrapShown(warning, style.width, { first: '! ', wrapped: '  ' }))];
}

// What the reader has just seen is not said again.
function promptOf({ kind, prompt, action, fields = [], channel }: Question, lastMessage: string | null): string {
  if (channel === 'conversation' && prompt.trim() === lastMessage?.trim())
    return 'The agent ended its turn. Say more, or finish.';
  // Several questions that became one: its prompt is the list of them, which stands below.
  const list = fields.map((field, index) => `${index + 1}. ${field.prompt}`).join('\n');
  if (fields.length > 0 && prompt === list) return `The agent has ${fields.length} questions:`;
  // One that says what it is about speaks for itself.
  return kind === 'approval' && !action ? `The agent asks for permission: ${prompt}` : prompt;
}

const KINDS: Readonly<Record<string, string>> = { add: 'new', delete: 'deleted', update: 'changed' };
const INKS: Readonly<Record<ChangedLine['sign'], Ink>> = { '+': 'green', '-': 'red', ' ': 'dim', '@': 'cyan' };

// Every line that is to be written, with its sign in front; `↪` marks a line that only wraps.
function changeLines(changes: readonly FileChange[], style: Style): string[] {
  if (changes.length === 0) return [];
  const { width } = style;
  const lines = [paint(style, 'bold', `  ${summarizeChanges(changes)}`)];
  for (const change of changes) {
    const { path, moveTo, kind, added, removed } = change;
    const name = `${KINDS[kind] ?? kind} ${nameInLine(path)}${moveTo === undefined ? '' : ` → ${nameInLine(moveTo)}`}`;
    lines.push(wrapShown(`${name} (+${added} −${removed})`, width, { first: '  ', rest: '  ', wrapped: '    ' }));
    for (const { sign, text } of change.lines) {
      const first = `  ${sign === '@' ? ' ' : sign} `;
      lines.push(paintLines(style, INKS[sign], wrapExact(text, width, { first, wrapped: '  ↪ ' })));
    }
  }
  return lines;
}

function optionLines(options: readonly Option[], style: Style, indent: string): string[] {
  const width = String(options.length).length;
  return options.flatMap(({ label, description }, index) => {
    const number = `${indent}${String(index + 1).padStart(width)}) `;
    const margin = ' '.repeat(number.length);
    const lines = [wrapExact(label, style.width, { first: number, rest: margin })];
    if (description) lines.push(paintLines(style, 'dim', wrapExact(description, style.width, { first: margin })));
    return lines;
  });
}

function defaultLine(value: Json | undefined, style: Style, indent: string): string[] {
  if (value === undefined || value === null) return [];
  return [paintLines(style, 'dim', wrapExact(`default: ${tellJson(value)}`, style.width, { first: indent }))];
}

function paintLines(style: Style, ink: Ink, text: string): string {
  return text
    .split('\n')
    .map((line) => paint(style, ink, line))
    .join('\n');
}

export function tellJson(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
