// A tool call on one line: how it ended, its name, what it was about, how long it took. Never wider than the screen.
// The command or path is shown to the letter; a warning stands above one with invisible characters.
import { textWidth } from './text-width.js';
import type { FcmpData } from '../fcmp/event.js';
import { asObject, type Json, type JsonObject } from '../kernel/json.js';
import { formatDuration } from './format-time.js';
import { nameInLine, warnOfNames } from '../kernel/visible-text.js';
import { exactLine, fitLine, oneLine } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';

type Completed = FcmpData['assistant.tool.completed'];

// The members of an input that say what a call is about, the best first.
const TELLING = ['command', 'cmd', 'file_path', 'filePath', 'path', 'pattern', 'query', 'url', 'prompt', 'description'];
const SHELL = /^(?:\/\S+\/)?(?:ba|z|da)?sh -l?c (?:'((?:[^']|'\\'')*)'|"((?:[^"\\$`]|\\.)*)"|(\S+))$/s;
const MARKS: Readonly<Record<Completed['status'], readonly [string, Ink]>> = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  declined: ['⊘', 'yellow'],
};
// More than any line shows; an input may be a whole file.
const ENOUGH = 2000;
// Below this nobody can read what a call was about.
const LEAST = 8;
// The names of line ends and tabs: a script of several lines is nothing to be warned of.
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

// Some engines start every command by a shell: the person wants to see the command.
function withoutShell(command: string): string {
  const match = command.length > ENOUGH ? null : SHELL.exec(command);
  if (!match) return command;
  return match[1]?.replaceAll("'\\''", "'") ?? match[2]?.replace(/\\(.)/gs, '$1') ?? match[3] ?? command;
}

export function renderTool(call: Completed, what: string, elapsedMs: number | null, style: Style): string {
  const [mark, ink] = MARKS[call.status];
  const took = call.duration_ms ?? elapsedMs;
  const facts = [
    call.status === 'declined' ? 'declined' : '',
    call.exit_code ? `exit ${call.exit_code}` : '',
    took === null ? '' : formatDuration(took),
  ].filter((fact) => fact !== '');
  const tail = facts.map((fact) => ` · ${fact}`).join('');
  const room = style.width - textWidth(`${mark} ${tail}`);
  const warning = warnOfNames([nameInLine(call.name), nameInLine(what).replaceAll(LINE_END, '')]);
  const above = warning === null ? '' : `${paint(style, 'red', fitLine(`! ${warning}`, style.width))}\n`;
  if (room < LEAST) return `${above}${paint(style, ink, mark)} ${exactLine(`${call.name}${tail}`, style.width - 2)}`;
  const name = exactLine(call.name, room < 2 * LEAST + 2 ? room : room - LEAST - 2);
  const reason = call.status === 'failed' && call.error ? oneLine(call.error, style.width) : '';
  const rest = Math.max(0, room - textWidth(name) - 2);
  // What it was about and why it failed share the room.
  const about = exactLine(what, reason === '' ? rest : Math.max(rest - textWidth(reason) - 3, Math.floor(rest / 2)));
  const why = reason === '' ? '' : fitLine(reason, rest - (about === '' ? 0 : textWidth(about) + 3));
  const middle = [about, why && paint(style, 'red', why)].filter((part) => part !== '').join(' · ');
  return (
    `${above}${paint(style, ink, mark)} ` +
    `${paint(style, 'bold', name)}${middle === '' ? '' : `  ${middle}`}${paint(style, 'dim', tail)}`
  );
}
