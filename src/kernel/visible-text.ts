// Shows text from others so that nothing in it is invisible and nothing is dropped: each control, format or otherwise
// invisible character is shown by its name, ⟨U+001B⟩. Brackets that the text itself contains are shown by name as well,
// so that restoreNamed() restores the exact text. Pure; the terminal and the console both use it.

// For exact text: commands, diffs, file names, options. Keeps newline, tab and the ordinary space. Every other space
// looks like them and is shown by name, and so are unassigned and private characters, which fonts do not show alike.
const INVISIBLE = '\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800\\u{1d159}\\u27e8\\u27e9';
const EXACT = new RegExp(`(?![\\n\\t ])[${INVISIBLE}\\p{Zs}]`, 'gu');
const IN_LINE = new RegExp(`(?! )[${INVISIBLE}\\p{Zs}]`, 'gu');
// For prose: keeps all spaces, direction marks and characters of later Unicode versions, and keeps joiners and
// variation selectors next to a letter or an emoji.
const PROSE = new RegExp(
  '\\r\\n|(?![\\n\\t\\u061c\\u200e\\u200f])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}' +
    '\\u2800\\u{1d159}\\u27e8\\u27e9]',
  'gu',
);
const JOINER = /^[\u200c\u200d]$/;
const SELECTOR = /^[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]$/u;
const JOINED = /^[\p{L}\p{M}\p{Emoji}\ufe0f]$/u;
const UNSEEN = /^[\s\p{C}\p{Default_Ignorable_Code_Point}]$/u;
export const NAME = /⟨U\+([0-9A-F]{4,6})⟩/g;
// Nearly all text is plain ASCII and needs no replacement.
const PLAIN = /^[\n\t -~]*$/;

// For text of several lines that a person approves or relies on.
export function nameInvisible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(EXACT, nameOf);
}

// Like nameInvisible, for text on one line: names line ends and tabs as well.
export function nameInLine(text: string): string {
  return /^[ -~]*$/.test(text) ? text : text.replace(IN_LINE, nameOf);
}

// For an agent's messages. `before` is the character before the text if it arrives in chunks.
export function nameInProse(text: string, before = ''): string {
  if (PLAIN.test(text)) return text;
  const whole = before + text;
  return whole
    .replace(PROSE, (char, at: number) => {
      if (at < before.length) return char;
      if (char === '\r\n') return '\n';
      return belongs(char, whole, at) ? char : nameOf(char);
    })
    .slice(before.length);
}

// Returns the exact text that nameInvisible or nameInLine got.
export function restoreNamed(shown: string): string {
  return shown.replace(NAME, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}

// Counts the characters shown by name, without brackets that the text itself contained.
export function countNames(shown: string): number {
  let count = 0;
  for (const [, code] of shown.matchAll(NAME)) if (code !== '27E8' && code !== '27E9') count += 1;
  return count;
}

// Returns the warning for texts that contain named characters; null if there are none.
export function warnOfNames(shown: readonly string[], warning: (count: number) => string): string | null {
  const count = shown.reduce((sum, text) => sum + countNames(text), 0);
  return count === 0 ? null : warning(count);
}

export function nameOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

// Whether a joiner is between letters or emoji, or a selector directly after a visible character.
function belongs(char: string, whole: string, at: number): boolean {
  const isJoiner = JOINER.test(char);
  if (!isJoiner && !SELECTOR.test(char)) return false;
  const previous = characterBefore(whole, at);
  if (!isJoiner) return previous !== '' && !UNSEEN.test(previous);
  const next = String.fromCodePoint(whole.codePointAt(at + char.length) ?? 0x20);
  return JOINED.test(previous) && JOINED.test(next);
}

function characterBefore(text: string, at: number): string {
  const pair = at >= 2 ? (text.codePointAt(at - 2) ?? 0) : 0;
  return pair > 0xffff ? String.fromCodePoint(pair) : text.slice(Math.max(0, at - 1), at);
}
