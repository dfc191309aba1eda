// Renders a question: the prompt, the action of an approval, numbered options, fields and the default. The dialogue
// (answer.ts) accepts these numbers. Nothing that is approved is left out: every line of every change is shown, and
// each invisible character by its name, with a warning above.
import type { FcmpData } from '../fcmp/event.js';
import { readFileChanges, type ChangedLine, type FileChange } from '../kernel/file-changes.js';
import type { Json } from '../kernel/json.js';
import { nameInLine, warnOfNames } from '../kernel/visible-text.js';
import { safeText } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';
import { showExact, wrapExact, wrapShown } from './wrap-exact.js';
import { terminalTexts } from './texts.js';
import { wrapText } from './wrap.js';

type Asked = FcmpData['user.input.required'];
type Option = Asked['options'][number];

export type Question = Pick<Asked, 'kind' | 'prompt' | 'options' | 'fields' | 'default' | 'channel' | 'action'> & {
  // The question has waited longer than its time limit.
  readonly overdue?: boolean | undefined;
};

export function renderQuestion(question: Question, style: Style, lastMessage: string | null = null): string {
  const fields = question.fields ?? [];
  const changes = readFileChanges(question.action);
  const prompt = paintLines(style, 'bold', renderPrompt(question, style, lastMessage));
  const lines = [...warningLines(question, changes, style), prompt, ...changeLines(changes, style)];
  // An approval is answered with letters instead of options.
  const options = question.kind === 'approval' ? [] : question.options;
  lines.push(...optionLines(options, style, '  '), ...defaultLine(question.default, style, '  '));
  for (const [index, field] of fields.entries()) {
    const indent = ' '.repeat(`${fields.length}. `.length + 2);
    const number = `  ${index + 1}.`.padEnd(indent.length);
    lines.push(wrapText(field.prompt, style.width, { first: number, rest: indent }));
    lines.push(...optionLines(field.options, style, indent), ...defaultLine(field.default, style, indent));
  }
  const margins = { first: '  ', rest: '  ' };
  const overdue = wrapText(terminalTexts().overdue, style.width, margins);
  if (question.overdue) lines.push(paintLines(style, 'red', overdue));
  return lines.join('\n');
}

// The action of an approval is shown exactly; other questions are prose.
function renderPrompt(question: Question, style: Style, lastMessage: string | null): string {
  const margins = { first: paint(style, 'yellow', '? '), rest: '  ' };
  const prompt = promptOf(question, lastMessage);
  const wrap = question.kind === 'approval' ? wrapExact : wrapText;
  return wrap(prompt, style.width, margins);
}

function warningLines(question: Question, changes: readonly FileChange[], style: Style): string[] {
  const { kind, prompt, options, fields = [], default: value } = question;
  const all = [...options, ...fields.flatMap((field) => field.options)];
  const shown = [
    kind === 'approval' ? showExact(prompt) : safeText(prompt),
    ...changes.flatMap(({ path, moveTo = '' }) => [nameInLine(path), nameInLine(moveTo)]),
    ...changes.flatMap(({ lines }) => lines.map(({ text }) => showExact(text))),
    ...all.flatMap(({ label, description = '' }) => [showExact(label), showExact(description)]),
    ...fields.map((field) => safeText(field.prompt)),
    ...[value, ...fields.map((field) => field.default)].map((each) => (each == null ? '' : showExact(tellJson(each)))),
  ];
  const warning = warnOfNames(shown, terminalTexts().invisible);
  if (warning === null) return [];
  return [paintLines(style, 'red', wrapShown(warning, style.width, { first: '! ', wrapped: '  ' }))];
}

// Does not repeat a message that the reader has just seen.
function promptOf({ kind, prompt, action, fields = [], channel }: Question, lastMessage: string | null): string {
  if (channel === 'conversation' && prompt.trim() === lastMessage?.trim()) return terminalTexts().turnEnded;
  // Several questions in one: the prompt repeats the list of fields below.
  const list = fields.map((field, index) => `${index + 1}. ${field.prompt}`).join('\n');
  if (fields.length > 0 && prompt === list) return terminalTexts().severalQuestions(fields.length);
  // An approval with an action needs no introduction.
  return kind === 'approval' && !action ? terminalTexts().permissionAsked(prompt) : prompt;
}

const INKS: Readonly<Record<ChangedLine['sign'], Ink>> = { '+': 'green', '-': 'red', ' ': 'dim', '@': 'cyan' };

// Every changed line with its sign in front; `↪` marks a wrapped line.
function changeLines(changes: readonly FileChange[], style: Style): string[] {
  if (changes.length === 0) return [];
  const { width } = style;
  const sum = (side: 'added' | 'removed'): number => changes.reduce((total, change) => total + change[side], 0);
  const summary = terminalTexts().changeSummary(changes.length, sum('added'), sum('removed'));
  const lines = [paint(style, 'bold', `  ${summary}`)];
  for (const change of changes) {
    const { path, moveTo, kind, added, removed } = change;
    const moved = moveTo === undefined ? '' : ` → ${nameInLine(moveTo)}`;
    const name = `${terminalTexts().changeKinds[kind] ?? kind} ${nameInLine(path)}${moved}`;
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
  return [
    paintLines(style, 'dim', wrapExact(terminalTexts().default(tellJson(value)), style.width, { first: indent })),
  ];
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
