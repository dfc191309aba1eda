// A question as a person reads it: the prompt, the numbered options, the fields, the default. The numbers are the ones
// that the dialogue (answer.ts) takes.
import type { FcmpData } from '../fcmp/event.js';
import { asObject, asString, type Json } from '../kernel/json.js';
import { paint, type Ink, type Style } from './style.js';
import { wrapText } from './wrap.js';

type Asked = FcmpData['user.input.required'];
type Option = Asked['options'][number];

export type Question = Pick<Asked, 'kind' | 'prompt' | 'options' | 'fields' | 'default' | 'channel' | 'action'> & {
  // It waits for longer than was agreed.
  readonly overdue?: boolean | undefined;
};

export function renderQuestion(question: Question, style: Style, lastMessage: string | null = null): string {
  const fields = question.fields ?? [];
  const prompt = wrapText(promptOf(question, lastMessage), style.width, { first: paint(style, 'yellow', '? '), rest: '  ' });
  const lines = [paintLines(style, 'bold', prompt)];
  lines.push(...changeLines(question.action, style));
  // An approval is answered by its letters.
  lines.push(...(question.kind === 'approval' ? [] : optionLines(question.options, style, '  ')), ...defaultLine(question.default, style, '  '));
  for (const [index, field] of fields.entries()) {
    const indent = ' '.repeat(`${fields.length}. `.length + 2);
    lines.push(wrapText(field.prompt, style.width, { first: `${`  ${index + 1}.`.padEnd(indent.length)}`, rest: indent }));
    lines.push(...optionLines(field.options, style, indent), ...defaultLine(field.default, style, indent));
  }
  if (question.overdue) lines.push(paintLines(style, 'red', wrapText('overdue: it waits for longer than agreed', style.width, { first: '  ', rest: '  ' })));
  return lines.join('\n');
}

// What the reader has just seen is not said again.
function promptOf({ kind, prompt, action, fields = [], channel }: Question, lastMessage: string | null): string {
  if (channel === 'conversation' && prompt.trim() === lastMessage?.trim()) return 'The agent ended its turn. Say more, or finish.';
  if (fields.length > 0 && fields.every((field) => prompt.includes(field.prompt))) return `The agent has ${fields.length} questions:`;
  // One that says what it is about speaks for itself.
  return kind === 'approval' && !action ? `The agent asks for permission: ${prompt}` : prompt;
}

// What is to be written into which files, as far as it can be read in a terminal; `parley show` has it whole.
const MAX_DIFF_LINES = 60;

function changeLines(action: Question['action'], style: Style): string[] {
  const changes = Array.isArray(action?.['changes']) ? (action['changes'] as Json[]) : [];
  const lines: string[] = [];
  for (const change of changes) {
    const { path, diff } = asObject(change) ?? {};
    const all = (asString(diff) ?? '').trimEnd().split('\n');
    const more = all.length - MAX_DIFF_LINES;
    const shown = all.slice(0, MAX_DIFF_LINES).map((line) => paintLines(style, inkOf(line), wrapText(line, style.width, { first: '    ', rest: '    ' })));
    lines.push(wrapText(asString(path) ?? '', style.width, { first: '  ', rest: '  ' }), ...shown);
    if (more > 0) lines.push(paint(style, 'dim', `    … and ${more} more lines`));
  }
  return lines;
}

function inkOf(line: string): Ink {
  return line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim';
}

function optionLines(options: readonly Option[], style: Style, indent: string): string[] {
  const width = String(options.length).length;
  return options.flatMap(({ label, description }, index) => {
    const number = `${indent}${String(index + 1).padStart(width)}) `;
    const margin = ' '.repeat(number.length);
    const lines = [wrapText(label, style.width, { first: number, rest: margin })];
    if (description) lines.push(paintLines(style, 'dim', wrapText(description, style.width, { first: margin, rest: margin })));
    return lines;
  });
}

function defaultLine(value: Json | undefined, style: Style, indent: string): string[] {
  if (value === undefined || value === null) return [];
  return [paintLines(style, 'dim', wrapText(`default: ${tellJson(value)}`, style.width, { first: indent, rest: indent }))];
}

function paintLines(style: Style, ink: Ink, text: string): string {
  return text.split('\n').map((line) => paint(style, ink, line)).join('\n');
}

export function tellJson(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
