// The text of RASP data that is used again for the conversation is always what JSON.stringify gives.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { reuseJson, type IdMember } from '../../src/fcmp/reuse-json.js';
import { runs } from '../support/runs.js';

const joined = (json: ReturnType<typeof reuseJson>) => (typeof json === 'string' ? json : json.join(''));
const member = (idMember: IdMember | null, itemId: string | null) => (idMember === null ? {} : { [idMember]: itemId });

const SHORT: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '/': '\\/', '\b': '\\b', '\f': '\\f' };
const hexOf = (unit: string) => unit.charCodeAt(0).toString(16).padStart(4, '0');

// The ways in which an engine may write a UTF-16 unit inside a string.
function writeUnit(unit: string, way: number): string {
  if (way === 1) return `\\u${hexOf(unit)}`;
  if (way === 2) return `\\u${hexOf(unit).toUpperCase()}`;
  if (way === 3 && SHORT[unit] !== undefined) return SHORT[unit];
  return JSON.stringify(unit).slice(1, -1);
}

const text = fc.string({
  unit: fc.constantFrom(...'a/"\\\b\f\n\r\t\u0000\u0007\u000b\u001f\u007fé€\u2028', '😀', '\ud800', '\udc00'),
  maxLength: 12,
});
const id = fc.option(text);
const idMember = fc.constantFrom(null, 'message_id' as const, 'call_id' as const);

test('a string in any spelling of JSON becomes what JSON.stringify gives', () => {
  fc.assert(
    fc.property(
      text,
      fc.array(fc.nat(3), { minLength: 24, maxLength: 24 }),
      idMember,
      id,
      (value, ways, name, item) => {
        const units = Array.from({ length: value.length }, (_, at) => value.charAt(at));
        const literal = `"${units.map((unit, at) => writeUnit(unit, ways[at] ?? 0)).join('')}"`;
        expect(JSON.parse(literal)).toBe(value);
        const reused = reuseJson(['{"name":"x","output":', literal, ',"truncated":true}'], name, item);
        const data = { ...member(name, item), name: 'x', output: value, truncated: true };
        expect(joined(reused)).toBe(JSON.stringify(data));
      },
    ),
    { numRuns: runs(5000), seed: 20 },
  );
});

test('a text of one part is used unchanged, after the id', () => {
  const data = { name: 'shell', input: { command: 'ls "a b"', 7: null } };
  expect(reuseJson(JSON.stringify(data), null, 'item "1"')).toBe(JSON.stringify(data));
  expect(reuseJson(JSON.stringify(data), 'call_id', 'item "1"')).toBe(JSON.stringify({ call_id: 'item "1"', ...data }));
  expect(reuseJson(JSON.stringify(data), 'call_id', null)).toBe(JSON.stringify({ call_id: null, ...data }));
});

test('a long text without unusual escapes is not copied', () => {
  const literal = JSON.stringify('a "quoted" line\nand \u0001 a C:\\path, €, 😀'.repeat(100));
  expect(reuseJson(['{"text":', literal, '}'], 'message_id', 'm')[1]).toBe(literal);
});
