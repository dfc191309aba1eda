// Renders a tool call on one line: outcome, name, subject and duration. Never wider than the screen. Shows the command
// or path exactly, with a warning above if it contains invisible characters.
import { textWidth } from './text-width.js';
import type { FcmpData } from '../fcmp/event.js';
import { asObject, type Json, type JsonObject } from '../kernel/json.js';
import { formatDuration } from './format-time.js';
import { nameInLine, warnOfNames } from '../kernel/visible-text.js';
import { exactLine, fitLine, oneLine } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';
import { terminalTexts } from './texts.js';

type Completed = FcmpData['assistant.tool.completed'];

// The members of an input that describe the subject of a call, the best first.
const TELLING = ['command', 'cmd', 'file_path', 'filePath', 'path', 'pattern', 'query', 'url', 'prompt', 'description'];
const SHELL = /^(?:\/\S+\/)?(?:ba|z|da)?sh -l?c (?:'((?:[^']|'\\'')*)'|"((?:[^"\\$`]|\\.)*)"|(\S+))$/s;
const MARKS: Readonly<Record<Completed['status'], readonly [string, Ink]>> = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  declined: ['⊘', 'yellow'],
};
// More than any line shows; an input may be a whole file.
const ENOUGH = 2000;
// A shorter subject is unreadable.
const LEAST = 8;
// The names of line ends and tabs, which need no warning: scripts have several lines.
const LINE_END = /⟨U\+000[9A]⟩/g;

export function tellInput(input: Json): string {
  return subjectOf(input).slice(0, ENOUGH);
}

function subjectOf(input: Json): string {
  if (typeof input === 'string') return input;
  const members = asObject(input);
  if (!members) return input === null ? '' : JSON.stringify(input);
  const paths = pathsOf(members);
  if (paths !== '') return paths;
  for (const name of TELLING) {
    const text = textOf(members[name]);
    if (text !== '') return name === 'command' || name === 'cmd' ? withoutShell(text) : text;
  }
  return Object.keys(members).length === 0 ? '' : JSON.stringify(members);
}

function pathsOf({ changes }: JsonObject): string {
  if (!Array.isArray(changes)) return '';
  return changes
    .map((change) => textOf(asObject(change)?.path))
    .filter((path) => path !== '')
    .join(', ');
}

function textOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) && value.every((part) => typeof part === 'string') ? value.join(' ') : '';
}

// Some engines wrap every command in a shell; people want to see the command itself.
function withoutShell(command: string): string {
  const match = command.length > ENOUGH ? null : SHELL.exec(command);
  if (!match) return command;
  return match[1]?.replaceAll("'\\''", "'") ?? match[2]?.replace(/\\(.)/gs, '$1') ?? match[3] ?? command;
}

export interface ToolFacts {
  // The command, path or other text that the call was about.
  readonly subject: string;
  // The measured time, for a call that does not report its own; null if unknown.
  readonly elapsedMs: number | null;
}

export function renderTool(call: Completed, { subject, elapsedMs }: ToolFacts, style: Style): string {
  const [mark, ink] = MARKS[call.status];
  const took = call.duration_ms ?? elapsedMs;
  const facts = [
    call.status === 'declined' ? (terminalTexts().decided['decline'] ?? '') : '',
    call.exit_code ? terminalTexts().exit(call.exit_code) : '',
    took === null ? '' : formatDuration(took),
  ].filter((fact) => fact !== '');
  const tail = facts.map((fact) => ` · ${fact}`).join('');
  const room = style.width - textWidth(`${mark} ${tail}`);
  const warning = warnOfNames(
    [nameInLine(call.name), nameInLine(subject).replaceAll(LINE_END, '')],
    terminalTexts().invisible,
  );
  const above = warning === null ? '' : `${paint(style, 'red', fitLine(`! ${warning}`, style.width))}\n`;
  if (room < LEAST) return `${above}${paint(style, ink, mark)} ${exactLine(`${call.name}${tail}`, style.width - 2)}`;
  const name = exactLine(call.name, room < 2 * LEAST + 2 ? room : room - LEAST - 2);
  const reason = call.status === 'failed' && call.error ? oneLine(call.error, style.width) : '';
  const rest = Math.max(0, room - textWidth(name) - 2);
  // The subject and the reason of a failure share the rest of the line.
  const about = exactLine(subject, reason === '' ? rest : Math.max(rest - textWidth(reason) - 3, Math.floor(rest / 2)));
  const why = reason === '' ? '' : fitLine(reason, rest - (about === '' ? 0 : textWidth(about) + 3));
  const middle = [about, why && paint(style, 'red', why)].filter((part) => part !== '').join(' · ');
  return (
    `${above}${paint(style, ink, mark)} ` +
    `${paint(style, 'bold', name)}${middle === '' ? '' : `  ${middle}`}${paint(style, 'dim', tail)}`
  );
}
