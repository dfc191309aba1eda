// Conversations for the tests of this room: recorded ones, and events made by hand.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { expect } from 'vitest';
import type { FcmpData, FcmpEvent, FcmpType } from '../../src/fcmp/event.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { ConversationView } from '../../src/terminal/conversation.js';
import type { Style } from '../../src/terminal/style.js';
import { runs } from '../support/runs.js';

const golden = new URL('../golden/', import.meta.url).pathname;

export const RECORDED = readdirSync(golden).flatMap((engine) =>
  readdirSync(join(golden, engine)).map((name) => `${engine}/${name}`),
);

export function loadRecorded(folder: string): FcmpEvent[] {
  return readFileSync(join(golden, folder, 'fcmp.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as FcmpEvent);
}

export function event<T extends FcmpType>(
  type: T,
  data: FcmpData[T],
  at: { readonly ms?: number; readonly attempt?: number } = {},
): FcmpEvent {
  return {
    protocol_version: 'fcmp/1.0',
    run_id: 'run_1',
    seq: 1,
    ts: new Date(at.ms ?? 0).toISOString(),
    attempt_number: at.attempt ?? 1,
    rasp_seq: 1,
    type,
    data: data as unknown as JsonObject,
  };
}

export function state(
  from: FcmpData['conversation.state.changed']['from'],
  to: FcmpData['conversation.state.changed']['to'],
  at: { readonly ms?: number; readonly attempt?: number } = {},
): FcmpEvent {
  return event(
    'conversation.state.changed',
    { from, to, trigger: 'turn.started', updated_at: new Date(at.ms ?? 0).toISOString() },
    at,
  );
}

export const plain = (width: number): Style => ({ colour: false, width });

export function show(events: readonly FcmpEvent[], style: Style, live = true): string {
  const view = new ConversationView(style, { live });
  return events.map((each) => view.push(each)).join('') + view.end();
}

export function expectFits(text: string, width: number): void {
  for (const line of text.split('\n')) expect(stringWidth(line), JSON.stringify(line)).toBeLessThanOrEqual(width);
}

// What engines might print: words, Chinese, emoji, marks, controls, escapes, halves of characters.
const PIECES = [
  'a',
  'word',
  'a-long-word-without-any-blank-in-it',
  ' ',
  '  ',
  '\n',
  '\t',
  '\r\n',
  '\r',
  '你',
  '漢字',
  '。',
  '「',
  '」',
  'é',
  'e\u0301',
  '\u0301',
  '🚀',
  '👩‍💻',
  '👩',
  '\u200d',
  '💻',
  '🇩🇪',
  '🇩',
  '한국어',
  '\u1112\u1161\u11ab',
  'ｶﾞ',
  'नमस्ते',
  '\ufe0f',
  '☁️',
  '\u001b',
  '\u001b[',
  '31m',
  '\u001b[31m',
  '\u001b]0;title\u0007',
  '\u001b]8;;http://x\u001b\\',
  '\u009b2J',
  '\u0007',
  '\u0000',
  '\u007f',
  '\u202e',
  '\u2066',
  '\ud83d',
  '\ude80',
  '\ufeff',
  '\u00ad',
  '\u2028',
  ';',
  '[',
  '\\',
  '(',
  ')',
  ',',
  '.',
];
export const hostile = (): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...PIECES) },
        { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join(''));

// The text cut at these places, also inside of characters.
export function cut(text: string, places: readonly number[]): string[] {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, text.length]
    .map((end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end))
    .filter((piece) => piece !== '');
}

// Escapes, other controls, turned directions: nothing of it may reach a terminal.
export const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\p{Surrogate}/u;

// More runs search longer, as in the property test of the parsers.
export const RUNS = { numRuns: Number(process.env['PARLEY_PROPERTY_RUNS'] ?? runs(150)) };
