// Parses a prompt as a script: [[word argument]] selects what a scripted engine does, with the same words for every
// engine. Never throws: anything but a valid directive (an unknown word, a missing or malformed argument) is plain
// text. Independent of engines, processes and sessions.
import { parseJson, type Json } from '../kernel/json.js';

// Words without an argument.
const BARE = ['fail', 'crash', 'hang', 'exit0', 'nosession', 'othersession', 'refuse', 'orphan', 'utf8'] as const;

export type Step =
  | { readonly type: 'answer'; readonly text: string }
  | { readonly type: 'ask'; readonly question: string; readonly options: readonly string[] }
  | { readonly type: 'approve'; readonly command: string }
  | { readonly type: 'done'; readonly result: Json }
  | { readonly type: 'tool'; readonly command: string }
  | { readonly type: 'file'; readonly name: string }
  | { readonly type: 'events'; readonly count: number; readonly bytes: number }
  | { readonly type: 'sleep'; readonly ms: number }
  | { readonly type: 'stderr'; readonly lines: number }
  | { readonly type: (typeof BARE)[number] };

const OPENING = /\[\[([a-z0-9]+)/g;
const MAX_COUNT = 10_000_000;
const MAX_EVENT_BYTES = 64 * 1024 * 1024;
// Longer, and a timer of Node fires at once.
const MAX_SLEEP_MS = 2_147_483_647;
// How many ]] the JSON of one directive may have.
const MAX_TRIES = 100;
// Neither a number nor the name of a file is longer.
const MAX_WORD_CHARS = 255;

// Each word makes a step of its argument, or undefined if it cannot.
const WORDS = new Map<string, (argument: string) => Step | undefined>([
  ['answer', (text) => (text === '' ? undefined : { type: 'answer', text })],
  ['ask', parseAsk],
  ['approve', (command) => (command === '' ? undefined : { type: 'approve', command })],
  ['done', parseDone],
  ['tool', (command) => (command === '' ? undefined : { type: 'tool', command })],
  ['file', (name) => (isFileName(name) ? { type: 'file', name } : undefined)],
  ['events', parseEvents],
  ['sleep', (text) => parseCount(text, MAX_SLEEP_MS, (ms) => ({ type: 'sleep', ms }))],
  ['stderr', (text) => parseCount(text, MAX_COUNT, (lines) => ({ type: 'stderr', lines }))],
  ...BARE.map((type) => [type, (text: string) => (text === '' ? { type } : undefined)] as const),
]);

// The steps in their order; none at all for a prompt without directives.
export function parseDirectives(prompt: string): Step[] {
  const steps: Step[] = [];
  const opening = new RegExp(OPENING);
  let closing = -1;
  for (let match = opening.exec(prompt); match; match = opening.exec(prompt)) {
    const from = opening.lastIndex;
    // Looked for only when passed, so that a long prompt without an end is read once.
    if (closing < from) closing = prompt.indexOf(']]', from);
    if (closing < 0) break;
    const directive = readDirective(prompt, match[1] ?? '', from, closing);
    if (!directive) continue;
    steps.push(directive.step);
    opening.lastIndex = directive.end;
  }
  return steps;
}

function readDirective(
  prompt: string,
  word: string,
  from: number,
  closing: number,
): { step: Step; end: number } | undefined {
  const parse = WORDS.get(word);
  // The word ends where a blank or the directive ends: [[answers x]] is no [[answer …]].
  if (!parse || (from !== closing && !/\s/.test(prompt.charAt(from)))) return undefined;
  for (const end of word === 'done' ? everyClosing(prompt, closing) : [lastOfRun(prompt, closing)]) {
    const step = parse(prompt.slice(from, end).trim());
    if (step) return { step, end: end + 2 };
  }
  return undefined;
}

// Of ]]] the last two end the directive, so that an argument may end with a bracket.
function lastOfRun(prompt: string, closing: number): number {
  let end = closing;
  while (prompt[end + 2] === ']') end += 1;
  return end;
}

// JSON may have ]] anywhere: each one is tried until the text before it is JSON.
function* everyClosing(prompt: string, closing: number): Generator<number> {
  for (let end = closing, tries = 0; end >= 0 && tries < MAX_TRIES; end = prompt.indexOf(']]', end + 1), tries += 1)
    yield end;
}

function parseAsk(text: string): Step | undefined {
  const [question = '', ...options] = text.split('|').map((part) => part.trim());
  return question === '' ? undefined : { type: 'ask', question, options: options.filter((option) => option !== '') };
}

// Without JSON the result is null.
function parseDone(text: string): Step | undefined {
  const result = text === '' ? null : parseJson(text);
  return result === undefined ? undefined : { type: 'done', result };
}

function parseEvents(text: string): Step | undefined {
  const [first = '', second = '', ...more] = text.split(/\s+/);
  if (more.length > 0) return undefined;
  return parseCount(first, MAX_COUNT, (count) =>
    parseCount(second, MAX_EVENT_BYTES, (bytes) => ({ type: 'events', count, bytes })),
  );
}

// A whole number up to a limit.
function parseCount(text: string, limit: number, make: (count: number) => Step | undefined): Step | undefined {
  return text.length <= MAX_WORD_CHARS && /^\d+$/.test(text) && Number(text) <= limit ? make(Number(text)) : undefined;
}

// A file of the working directory, never one elsewhere.
function isFileName(name: string): boolean {
  return name !== '' && name.length <= MAX_WORD_CHARS && name !== '.' && name !== '..' && !/[/\0]/.test(name);
}
