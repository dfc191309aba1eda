// Text that others wrote, made harmless for a terminal: it cannot move the cursor, colour, ring, set a title or turn the
// direction of writing. Whole escape sequences are left out; any other control character is shown as a sign.
// Newline and tab stay. The result is the same however the text was cut into pieces.
import { textWidth } from './text-width.js';

// The limits keep a sequence that never ends from swallowing the text behind it.
const PAYLOAD = '[^\\x00-\\x1f\\x7f-\\x9f]{0,4096}';
const CSI = '(?:\\x1b\\[|\\x9b)[0-?]{0,64}[ -/]{0,8}';
const STRING = `(?:\\x1b[\\]PX^_]|[\\x90\\x98\\x9d-\\x9f])${PAYLOAD}`;
const SEQUENCE = `${CSI}[@-~]|${STRING}(?:\\x07|\\x1b\\\\|\\x9c)|\\x1b[ -/]{1,4}[0-~]|\\x1b[0-OQ-WYZ\\\\\`-~]`;
const LONE_SURROGATE = '[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]';
// Overrides, embeddings and isolates; the plain marks of direction are part of Arabic and Hebrew text.
const DIRECTION = '\\u202a-\\u202e\\u2066-\\u2069';
// Characters without a picture, on whose width terminals do not agree. Joiners and variation selectors make emoji: they stay.
const INVISIBLE = '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u2060-\\u2065\\u206a-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb';
const UNSAFE = new RegExp(`${SEQUENCE}|\\r\\n|[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029${DIRECTION}${INVISIBLE}]|${LONE_SURROGATE}`, 'g');
// What may still become something else with the next piece.
const OPEN_END = new RegExp(`(?:${CSI}|${STRING}\\x1b?|\\x1b[ -/]{0,4}|\\r|[\\ud800-\\udbff])$`);
const INVISIBLE_ONE = new RegExp(`[${INVISIBLE}]`);

const graphemes = new Intl.Segmenter();

export function safeText(text: string): string {
  return text.replace(UNSAFE, replacement);
}

function replacement(found: string): string {
  if (found === '\r\n' || found === '\u2028' || found === '\u2029') return '\n';
  if (found.length > 1 || INVISIBLE_ONE.test(found)) return '';
  const code = found.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

// The same for text that comes in pieces: what is not clear yet is kept back.
export class SafeStream {
  #rest = '';

  push(piece: string): string {
    const text = this.#rest + piece;
    const open = text.search(OPEN_END);
    this.#rest = open === -1 ? '' : text.slice(open);
    return safeText(open === -1 ? text : text.slice(0, open));
  }

  end(): string {
    const rest = this.#rest;
    this.#rest = '';
    return safeText(rest);
  }
}

// What a person takes for one character.
export function clustersOf(text: string): Iterable<string> {
  return /^[\n\t -~]*$/.test(text) ? text : Array.from(graphemes.segment(text), ({ segment }) => segment);
}

// One line of at most so many columns. Of a path the end says more than the start.
export function oneLine(text: string, columns: number, keep: 'start' | 'end' = 'start'): string {
  // A raw line may have 16 MiB; nobody draws more than a few code units a column.
  const enough = columns * 16 + 64;
  const part = text.length <= enough ? text : keep === 'start' ? text.slice(0, enough) : text.slice(-enough);
  const line = safeText(part).replace(/\s+/g, ' ').trim();
  if (part === text && textWidth(line) <= columns) return line;
  if (columns < 1) return '';
  const clusters = [...clustersOf(line)];
  if (keep === 'end') clusters.reverse();
  let width = 1;
  const fitting: string[] = [];
  for (const cluster of clusters) {
    width += textWidth(cluster);
    if (width > columns) break;
    fitting.push(cluster);
  }
  return keep === 'start' ? `${fitting.join('').trimEnd()}…` : `…${fitting.toReversed().join('').trimStart()}`;
}
