// Finds the one object of `gemini -o json`, even if text surrounds it or it is damaged.
// The order is fixed: the whole text; the object with other text around it; then, in the `response` member if it can be
// read, else in the whole text: a fenced block, then any fragment that decodes.
import { isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import type { ByteRange } from '../../rasp/draft.js';
import { findFencedJson, findJsonFragment, type JsonFragment } from '../find-json.js';

export interface FoundDocument extends Lines {
  readonly how: 'main' | 'surrounded' | 'drifted' | 'fence' | 'fragment';
  readonly body: Json;
  // The text of a damaged object's `response` member.
  readonly response?: string | undefined;
  // Its session id, read without a JSON parser.
  readonly sessionId?: string | undefined;
}

interface Lines {
  readonly firstLine: number;
  readonly lastLine: number;
  // Other text on the object's first and last line.
  readonly beside: readonly string[];
}

const MEMBERS = ['session_id', 'response', 'error'] as const;

export function decodeDocument(lines: readonly string[]): FoundDocument | undefined {
  const text = lines.join('\n');
  const whole = { firstLine: 0, lastLine: lines.length - 1, beside: [] };
  const body = parseJson(text);
  if (isObject(body)) return { how: isMain(body) ? 'main' : 'drifted', body, ...whole };
  return findSurrounded(text) ?? salvage(text, whole);
}

function isMain(body: Json): boolean {
  return isObject(body) && MEMBERS.some((member) => Object.hasOwn(body, member));
}

function findSurrounded(text: string): FoundDocument | undefined {
  // Text after a fence is searched later, as a fenced block.
  const fence = /^[ \t]*```/m.exec(text);
  const fragment = findJsonFragment(fence ? text.slice(0, fence.index) : text, isMain);
  return fragment && { how: 'surrounded', body: fragment.value, ...linesOf(text, fragment) };
}

function salvage(text: string, whole: Lines): FoundDocument | undefined {
  const response = readMember(text, 'response');
  const sessionId = readMember(text, 'session_id');
  const where = response ?? text;
  const [fenced] = findFencedJson(where);
  // For a match inside the response, the whole text is one damaged object; elsewhere the surrounding text is not part
  // of it.
  if (fenced)
    return {
      how: 'fence',
      body: fenced.value,
      response,
      sessionId,
      ...(response === undefined ? { ...fenced, beside: [] } : whole),
    };
  const fragment = findJsonFragment(
    where,
    (value) => typeof value === 'object' && value !== null && Object.keys(value).length > 0,
  );
  return (
    fragment && {
      how: 'fragment',
      body: fragment.value,
      response,
      sessionId,
      ...(response === undefined ? linesOf(text, fragment) : whole),
    }
  );
}

// Returns the lines that a part of the text touches, and the other text on these lines.
function linesOf(text: string, { start, end }: JsonFragment): Lines {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const lineEnd = text.indexOf('\n', end);
  const beside = [text.slice(lineStart, start), text.slice(end, lineEnd < 0 ? undefined : lineEnd)];
  return {
    firstLine: countLines(text.slice(0, lineStart)),
    lastLine: countLines(text.slice(0, end)),
    beside: beside.filter((rest) => rest.trim() !== ''),
  };
}

// Reads the string value of the first member of that name, without a JSON parser because the object around it is
// damaged. A member after a fence belongs to the fenced block; a member inside a string has escaped quotes and does not
// match.
function readMember(text: string, name: 'response' | 'session_id'): string | undefined {
  const key = (name === 'response' ? /"response"\s{0,8}:\s{0,8}"/ : /"session_id"\s{0,8}:\s{0,8}"/).exec(text);
  const fence = /^[ \t]*```/m.exec(text);
  if (!key || (fence && fence.index < key.index)) return undefined;
  const start = key.index + key[0].length;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') {
      const value = parseJson(text.slice(start - 1, at + 1));
      return typeof value === 'string' ? value : undefined;
    }
  }
  return undefined;
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}

// The last lines of stderr: a failed `-o json` puts its object there, after warnings and stack traces.
export class StderrTail {
  static readonly #maxLines = 200;
  static readonly #maxLineChars = 64 * 1024;
  readonly #lines: { text: string; range: ByteRange | null }[] = [];

  add(text: string, range: ByteRange | null): void {
    this.#lines.push({ text: text.slice(0, StderrTail.#maxLineChars), range });
    if (this.#lines.length > StderrTail.#maxLines) this.#lines.shift();
  }

  // The object at the end of the text, with the range of the line that completes it.
  findObject(): { body: JsonObject; range: ByteRange | null } | undefined {
    const last = this.#lines.findLastIndex((line) => line.text === '}');
    for (let first = last - 1; first >= 0; first -= 1) {
      if (this.#lines[first]?.text !== '{') continue;
      const body = parseJson(
        this.#lines
          .slice(first, last + 1)
          .map((line) => line.text)
          .join('\n'),
      );
      if (isObject(body)) return { body, range: this.#lines[last]?.range ?? null };
    }
    return undefined;
  }
}
