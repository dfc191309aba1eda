// Shows text that others wrote so that nothing in it is invisible and nothing is dropped: each control, format or
// otherwise invisible character is shown by its name, ⟨U+001B⟩. The brackets of names are named too wherever a text has
// them, so that restoreNamed() gives back the exact text. Pure; the terminal and the console both use it.

// Exact: commands, diffs, file names, options. Newline, tab and the ordinary blank stay; every other blank looks like
// them and is named. Unassigned and private characters have no picture that everybody sees.
const INVISIBLE = '\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800\\u{1d159}\\u27e8\\u27e9';
const EXACT = new RegExp(`(?![\\n\\t ])[${INVISIBLE}\\p{Zs}]`, 'gu');
const IN_LINE = new RegExp(`(?! )[${INVISIBLE}\\p{Zs}]`, 'gu');
// Prose: blanks of all kinds, marks of direction and characters of later Unicode versions stay; joiners and variation
// selectors stay where they belong to a letter or an emoji.
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
// Nearly all text is plain, and needs no table.
const PLAIN = /^[\n\t -~]*$/;

// For text of several lines that a person approves or relies on.
export function nameInvisible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(EXACT, nameOf);
}

// The same for what is shown in one line: line ends and tabs are named too.
export function nameInLine(text: string): string {
  return /^[ -~]*$/.test(text) ? text : text.replace(IN_LINE, nameOf);
}

// For what an agent says. `before` is the character right before the text, where it comes in pieces.
export function nameInProse(text: string, before = ''): string {
  if (PLAIN.test(text)) return text;
  const whole = before + text;
  return whole
    .replace(PROSE, (found, at: number) => {
      if (at < before.length) return found;
      if (found === '\r\n') return '\n';
      return belongs(found, whole, at) ? found : nameOf(found);
    })
    .slice(before.length);
}

// The exact text behind what nameInvisible and nameInLine show.
export function restoreNamed(shown: string): string {
  return shown.replace(NAME, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}

// How many characters a shown text has by name, without the brackets of names that the text itself had.
export function countNames(shown: string): number {
  let count = 0;
  for (const [, code] of shown.matchAll(NAME)) if (code !== '27E8' && code !== '27E9') count += 1;
  return count;
}

// The warning that stands above shown texts with names in them; null if there are none.
export function warnOfNames(shown: readonly string[]): string | null {
  const count = shown.reduce((sum, text) => sum + countNames(text), 0);
  if (count === 0) return null;
  const characters = count === 1 ? '1 invisible or control character' : `${count} invisible or control characters`;
  return `This text contains ${characters}, shown as ⟨U+…⟩.`;
}

export function nameOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

// A joiner between letters or emoji, a selector right behind something visible.
function belongs(found: string, whole: string, at: number): boolean {
  const isJoiner = JOINER.test(found);
  if (!isJoiner && !SELECTOR.test(found)) return false;
  const previous = characterBefore(whole, at);
  if (!isJoiner) return previous !== '' && !UNSEEN.test(previous);
  const next = String.fromCodePoint(whole.codePointAt(at + found.length) ?? 0x20);
  return JOINED.test(previous) && JOINED.test(next);
}

function characterBefore(text: string, at: number): string {
  const pair = at >= 2 ? (text.codePointAt(at - 2) ?? 0) : 0;
  return pair > 0xffff ? String.fromCodePoint(pair) : text.slice(Math.max(0, at - 1), at);
}
