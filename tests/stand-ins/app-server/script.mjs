// A prompt as a script for this server. It differs from src/rehearsal/directives.ts: other directives, and arguments
// that it does not support (two commands, a path and a text). The form is the same: [[word argument]]; other text is
// plain text.
const OPENING = /\[\[([a-z]+[01]?)/g;
const MAX_COUNT = 10_000_000;

const text = (name) => (argument) => (argument === '' ? undefined : { [name]: argument });
const bare = (argument) => (argument === '' ? {} : undefined);
const count = (name) => (argument) =>
  /^\d{1,8}$/.test(argument) && Number(argument) <= MAX_COUNT ? { [name]: Number(argument) } : undefined;

// Each directive creates a step from its argument, or returns undefined for an invalid one.
const WORDS = {
  say: text('text'),
  reason: text('text'),
  run: text('command'),
  approve: text('command'),
  approvechanged: (argument) => pair(argument, '||', (command, other) => ({ command, other })),
  patch: (argument) => pair(argument, ' ', (path, content) => ({ path, content })),
  hiddenpatch: (argument) => pair(argument, ' ', (path, content) => ({ path, content })),
  hiddenpatch0: (argument) => pair(argument, ' ', (path, content) => ({ path, content })),
  permissions: bare,
  parallel: (argument) => pair(argument, ' | ', (first, second) => ({ commands: [first, second] })),
  ask: question,
  input: question,
  form: text('message'),
  form1: text('message'),
  fickle: count('ms'),
  oddcall: bare,
  hugeform: count('bytes'),
  change: (argument) => ({ command: argument === '' ? null : argument }),
  work: count('ms'),
  hang: bare,
  noise: count('lines'),
  exit: count('code'),
  kill: bare,
  done: result,
  fail: text('message'),
};

export function parseScript(prompt) {
  const steps = [];
  const opening = new RegExp(OPENING);
  for (let match = opening.exec(prompt); match; match = opening.exec(prompt)) {
    const directive = readDirective(prompt, match[1], opening.lastIndex);
    if (!directive) continue;
    steps.push(directive.step);
    opening.lastIndex = directive.end;
  }
  return steps;
}

function readDirective(prompt, word, from) {
  const parse = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  const closing = prompt.indexOf(']]', from);
  // The word ends where a blank or the directive ends.
  if (!parse || closing < 0 || (closing !== from && !/\s/.test(prompt.charAt(from)))) return undefined;
  for (const end of word === 'done' ? everyClosing(prompt, closing) : [lastOfRun(prompt, closing)]) {
    const argument = parse(prompt.slice(from, end).trim());
    if (argument) return { step: { word, ...argument }, end: end + 2 };
  }
  return undefined;
}

// Of ]]] the last two end the directive.
function lastOfRun(prompt, closing) {
  let end = closing;
  while (prompt[end + 2] === ']') end += 1;
  return end;
}

// JSON may have ]] anywhere.
function* everyClosing(prompt, closing) {
  for (let end = closing; end >= 0; end = prompt.indexOf(']]', end + 1)) yield end;
}

function pair(argument, between, make) {
  const at = argument.indexOf(between);
  const [first, second] = [argument.slice(0, at).trim(), argument.slice(at + between.length).trim()];
  return at < 0 || first === '' || second === '' ? undefined : make(first, second);
}

function question(argument) {
  const [asked, ...options] = argument.split('|').map((part) => part.trim());
  return asked === '' ? undefined : { question: asked, options: options.filter((option) => option !== '') };
}

// Without JSON the result is null.
function result(argument) {
  try {
    return { result: argument === '' ? null : JSON.parse(argument) };
  } catch {
    return undefined;
  }
}
