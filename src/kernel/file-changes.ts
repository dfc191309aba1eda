// The files that an approval or a tool call changes, line by line with the sign of each line, and how many lines are
// added and removed. Every character of the change is in the result. Pure; the terminal and the console both use it.
import { asObject, asString, type Json } from './json.js';

export interface ChangedLine {
  readonly sign: '+' | '-' | ' ' | '@';
  readonly text: string;
}

export interface FileChange {
  readonly path: string;
  readonly moveTo: string | undefined;
  readonly kind: string;
  readonly lines: readonly ChangedLine[];
  readonly added: number;
  readonly removed: number;
}

const HEADER = /^(?:---|\+\+\+) /;
const NO_FINAL_NEWLINE = '\\ No newline at end of file';

// Returns an empty list if the value has no list of changes.
export function readFileChanges(value: Json | undefined): readonly FileChange[] {
  const changes = asObject(value)?.['changes'];
  return Array.isArray(changes) ? changes.map((change) => readChange(asObject(change) ?? {})) : [];
}

function readChange(change: { readonly [name: string]: Json }): FileChange {
  const kindBody = asObject(change['kind']);
  const kind = asString(change['kind']) ?? asString(kindBody?.['type']) ?? 'update';
  const lines = linesOf(kind, asString(change['diff']) ?? '');
  const count = (sign: string): number => lines.reduce((sum, line) => sum + (line.sign === sign ? 1 : 0), 0);
  const moveTo = asString(change['move_to']) ?? asString(kindBody?.['move_path']);
  return { path: asString(change['path']) ?? '', moveTo, kind, lines, added: count('+'), removed: count('-') };
}

// A new or deleted file arrives as its plain text, whose lines may start with any character; other changes arrive as a
// diff.
function linesOf(kind: string, text: string): ChangedLine[] {
  if (text === '') return [];
  const lines = text.split('\n');
  const endsWithNewline = lines.at(-1) === '';
  if (endsWithNewline) lines.pop();
  if (kind !== 'add' && kind !== 'delete') return diffLines(lines);
  const sign = kind === 'add' ? '+' : '-';
  const whole = lines.map((line): ChangedLine => ({ sign, text: line }));
  return endsWithNewline ? whole : [...whole, { sign: ' ', text: NO_FINAL_NEWLINE }];
}

function diffLines(lines: readonly string[]): ChangedLine[] {
  let isInHunk = false;
  return lines.map((line) => {
    if (line.startsWith('@@')) isInHunk = true;
    if (line.startsWith('@@')) return { sign: '@', text: line };
    if (!isInHunk && HEADER.test(line)) return { sign: ' ', text: line };
    if (line.startsWith('+')) return { sign: '+', text: line.slice(1) };
    if (line.startsWith('-')) return { sign: '-', text: line.slice(1) };
    return { sign: ' ', text: line.startsWith(' ') ? line.slice(1) : line };
  });
}
