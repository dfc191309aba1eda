// Damages the output of an engine, seeded: bytes, lines, and the JSON in the lines.
import { pick, times, type Random } from './fuzz.js';
import { mutateJson, toJsonText } from './json-mutations.js';

type Damage = (bytes: Buffer, random: Random, others: readonly Buffer[]) => Buffer;

const SPECIALS = [
  '\r\n',
  '\n\n',
  '\r',
  '\ufeff',
  '\0',
  '\u2028',
  '\u2029',
  '\u0085',
  '\u001b[31m',
  '\u001b',
  '```json\n',
  '```\n',
  '<Execution Info>',
  '</Execution Info>',
  '{',
  '}',
  '[',
  '"',
  '\\',
  '\\u',
  '{"type":"error"}\n',
  'null\n',
  '1e999\n',
  '[]\n',
  '"text"\n',
  '{"__proto__":{"type":"x"}}\n',
].map((text) => Buffer.from(text));
const NO_TEXT = [
  [0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0xe2, 0x80],
  [0xc3],
  [0x80],
  [0xf4, 0x90, 0x80, 0x80],
].map((bytes) => Buffer.from(bytes));

const insertAt = (bytes: Buffer, at: number, what: Buffer) =>
  Buffer.concat([bytes.subarray(0, at), what, bytes.subarray(at)]);
const linesOf = (bytes: Buffer) => bytes.toString('latin1').split('\n');
const joined = (lines: readonly string[]) => Buffer.from(lines.join('\n'), 'latin1');

// Changes the JSON of one of the lines with JSON.
const mutateLine: Damage = (bytes, random) => {
  const lines = linesOf(bytes);
  const at = random(lines.length);
  try {
    const value: unknown = JSON.parse(Buffer.from(lines[at] ?? '', 'latin1').toString('utf8'));
    lines[at] = Buffer.from(toJsonText(mutateJson(value, random))).toString('latin1');
  } catch {
    lines[at] = (lines[at] ?? '').slice(0, random(20));
  }
  return joined(lines);
};

const DAMAGES: readonly Damage[] = [
  mutateLine,
  mutateLine,
  mutateLine,
  mutateLine,
  mutateLine,
  mutateLine,
  (bytes, random) => insertAt(bytes, random(bytes.length + 1), pick(random, SPECIALS)),
  (bytes, random) => insertAt(bytes, random(bytes.length + 1), pick(random, NO_TEXT)),
  (bytes, random) =>
    Buffer.from(bytes.map((byte) => (random(Math.max(2, bytes.length >> 1)) === 0 ? byte ^ (1 << random(8)) : byte))),
  (bytes, random) => bytes.subarray(0, random(bytes.length + 1)),
  (bytes, random) => bytes.subarray(random(bytes.length + 1)),
  // Removed, duplicated, swapped, merged, torn.
  (bytes, random) => joined(linesOf(bytes).filter(() => random(6) !== 0)),
  (bytes, random) => joined(linesOf(bytes).flatMap((line) => (random(6) === 0 ? [line, line] : [line]))),
  (bytes, random) => joined(linesOf(bytes).toSorted(() => random(3) - 1)),
  (bytes, random) => Buffer.from(bytes.filter((byte) => byte !== 0x0a || random(3) !== 0)),
  (bytes, random) =>
    joined(
      linesOf(bytes).flatMap((line) =>
        random(5) === 0 ? [line.slice(0, line.length >> 1), line.slice(line.length >> 1)] : [line],
      ),
    ),
  (bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\n', '\r\n'), 'latin1'),
  // From another recording.
  (bytes, random, others) => Buffer.concat([bytes, pick(random, others)]),
  (bytes, random, others) => insertAt(bytes, random(bytes.length + 1), pick(random, others)),
];

export function damage(bytes: Buffer, random: Random, others: readonly Buffer[], most = 4): Buffer {
  return times(random(most + 1), () => pick(random, DAMAGES)).reduce(
    (rest, change) => change(rest, random, others),
    bytes,
  );
}
