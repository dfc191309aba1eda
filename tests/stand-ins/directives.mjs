// A prompt as a script: [[word argument]] chooses what a stand-in does, the same words for every engine. Total: it never
// throws, and what is no directive (an unknown word, a missing or malformed argument) is plain text.
// Nothing here knows of an engine, a process or a session.

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
const WORDS = new Map([
  ['answer', (text) => text && { type: 'answer', text }],
  ['ask', parseAsk],
  ['done', parseDone],
  ['tool', (command) => command && { type: 'tool', command }],
  ['file', (name) => isFileName(name) && { type: 'file', name }],
  ['events', parseEvents],
  ['sleep', (text) => parseCounts(text, { ms: MAX_SLEEP_MS }, 'sleep')],
  ['stderr', (text) => parseCounts(text, { lines: MAX_COUNT }, 'stderr')],
  ...['fail', 'crash', 'hang', 'exit0', 'nosession', 'othersession', 'refuse', 'orphan', 'utf8'].map((type) => [type, (text) => text === '' && { type }]),
]);

// The steps in their order; none at all for a prompt without directives.
export function parseDirectives(prompt) {
  const steps = [];
  const opening = new RegExp(OPENING);
  let closing = -1;
  for (let found = opening.exec(prompt); found; found = opening.exec(prompt)) {
    const from = opening.lastIndex;
    // Looked for only when passed, so that a long prompt without an end is read once.
    if (closing < from) closing = prompt.indexOf(']]', from);
    if (closing < 0) break;
    const directive = readDirective(prompt, found[1], from, closing);
    if (!directive) continue;
    steps.push(directive.step);
    opening.lastIndex = directive.end;
  }
  return steps;
}

function readDirective(prompt, word, from, closing) {
  const parse = WORDS.get(word);
  // The word ends where a blank or the directive ends: [[answers x]] is no [[answer …]].
  if (!parse || (from !== closing && !/\s/.test(prompt[from]))) return undefined;
  for (const end of word === 'done' ? everyClosing(prompt, closing) : [lastOfRun(prompt, closing)]) {
    const step = parse(prompt.slice(from, end).trim());
    if (step) return { step, end: end + 2 };
  }
  return undefined;
}

// Of ]]] the last two end the directive, so that an argument may end with a bracket.
function lastOfRun(prompt, closing) {
  let end = closing;
  while (prompt[end + 2] === ']') end += 1;
  return end;
}

// JSON may have ]] anywhere: each one is tried until the text before it is JSON.
function* everyClosing(prompt, closing) {
  for (let end = closing, tries = 0; end >= 0 && tries < MAX_TRIES; end = prompt.indexOf(']]', end + 1), tries += 1) yield end;
}

function parseAsk(text) {
  const [question, ...options] = text.split('|').map((part) => part.trim());
  return question && { type: 'ask', question, options: options.filter((option) => option !== '') };
}

// Without JSON the result is null.
function parseDone(text) {
  if (text === '') return { type: 'done', result: null };
  try {
    return { type: 'done', result: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function parseEvents(text) {
  return parseCounts(text, { count: MAX_COUNT, bytes: MAX_EVENT_BYTES }, 'events');
}

// Whole numbers, as many as there are limits.
function parseCounts(text, limits, type) {
  if (text.length > MAX_WORD_CHARS) return undefined;
  const names = Object.keys(limits);
  const words = text.split(/\s+/);
  if (words.length !== names.length || !words.every((word, index) => /^\d+$/.test(word) && Number(word) <= limits[names[index]])) return undefined;
  return { type, ...Object.fromEntries(words.map((word, index) => [names[index], Number(word)])) };
}

// A file of the working directory, never one elsewhere.
function isFileName(name) {
  return name !== '' && name.length <= MAX_WORD_CHARS && name !== '.' && name !== '..' && !/[/\0]/.test(name);
}
