// What a Chinese text may contain in Latin letters: names, commands, options, paths, codes. Everything else is a
// sentence that was left in English.
const HAN = /\p{Script=Han}/u;
// Three words in a row are a sentence. Two are a name: "JSON Schema", "Host header".
const SENTENCE = /[A-Za-z][a-z']*(?:,? [A-Za-z]?[a-z']+){2,}/;
const ALLOWED: readonly RegExp[] = [
  /`[^`]*`/g,
  /"[^"]*"/g,
  // A command with its arguments, to the end of the line or to the next Chinese character.
  /\b(?:parley|npm|npx|node|kill|chmod|sqlite3|codex|gemini|opencode|git) [ -~]*/g,
  /\b(?:DROP|SELECT|INSERT|GET|POST) [ -~]*/g,
  /(?:https?|postgresql):\/\/[!-~]+/g,
  /\{[a-z_]+\}/g,
  /[\w.~*-]*\/[\w./~*-]+/g,
];

export function hasChinese(text: string): boolean {
  return HAN.test(text);
}

// The English sentence in a text, or null.
export function findEnglish(text: string): string | null {
  const rest = ALLOWED.reduce((left, pattern) => left.replaceAll(pattern, '·'), text);
  return SENTENCE.exec(rest)?.[0] ?? null;
}
