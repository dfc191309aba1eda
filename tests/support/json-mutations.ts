// Damages JSON: members removed, renamed, of another type, deeply nested, huge, and forms that only text can have.
import { pick, type Random } from './fuzz.js';

// A placeholder in a value for text that a value cannot express.
const RAW = '\u0001raw:';

const TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\u001b[2J',
  '\r\n',
  '\ud800',
  '\udfff\ud800',
  '\u202e',
  '%s%n',
  '../../../etc/passwd',
  '<script>',
  '0',
  '-1',
  'true',
  'null',
  '__proto__',
  'ı',
  '😀'.repeat(40),
];
const NUMBERS = [0, -0, -1, 1, 0.5, 1e21, -1e308, 2 ** 31, 2 ** 53, 2 ** 53 + 2, 2 ** 63, Number.MIN_VALUE];
const RAW_VALUES = [
  '1e999',
  '-1e999',
  '123456789012345678901234567890',
  '0.1e-400',
  '"\\ud800"',
  '"\\u0000"',
  '{"a":1,"a":2}',
  '{"__proto__":{"x":1}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"toString":1,"length":-1}',
  '[[[[[[]]]]]]',
];
const NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'length',
  '',
  ' ',
  '0',
  'type',
  'id',
  'TYPE',
  'a\0',
  '\u2028',
  'x'.repeat(300),
];

export function anyJson(random: Random): unknown {
  switch (random(8)) {
    case 0:
      return pick(random, TEXTS);
    case 1:
      return pick(random, NUMBERS);
    case 2:
      return pick(random, [true, false, null]);
    case 3:
      return [];
    case 4:
      return {};
    case 5:
      return `${RAW}${pick(random, RAW_VALUES)}`;
    case 6:
      return [anyJson(random), anyJson(random)];
    default:
      return Object.fromEntries([[pick(random, NAMES), anyJson(random)]]);
  }
}

// Changes one place in it.
export function mutateJson(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random(12) === 0) return replace(value, random);
  if (Array.isArray(value)) return mutateList(value, random);
  const entries = Object.entries(value);
  const at = random(entries.length);
  const [name, member] = entries[at] ?? ['', null];
  // Usually deeper: readers look for existing members.
  switch (entries.length === 0 ? 3 : random(10)) {
    case 0:
      return Object.fromEntries(entries.filter((_, index) => index !== at));
    case 1:
      return Object.fromEntries(entries.map((entry, index) => (index === at ? [pick(random, NAMES), member] : entry)));
    case 2:
      return Object.fromEntries(entries.map((entry, index) => (index === at ? [name, anyJson(random)] : entry)));
    case 3:
      return Object.fromEntries([...entries, [pick(random, NAMES), anyJson(random)]]);
    default:
      return Object.fromEntries(
        entries.map((entry, index) => (index === at ? [name, mutateJson(member, random)] : entry)),
      );
  }
}

function mutateList(value: readonly unknown[], random: Random): unknown[] {
  const at = random(value.length);
  switch (value.length === 0 ? 0 : random(5)) {
    case 0:
      return [...value, anyJson(random)];
    case 1:
      return value.filter((_, index) => index !== at);
    case 2:
      return [...value, ...value];
    default:
      return value.map((item, index) => (index === at ? mutateJson(item, random) : item));
  }
}

function replace(value: unknown, random: Random): unknown {
  switch (random(7)) {
    case 0:
      return `${RAW}${'['.repeat(300)}${']'.repeat(300)}`;
    case 1:
      return `${RAW}${'{"a":'.repeat(250)}1${'}'.repeat(250)}`;
    case 2:
      return [value];
    case 3:
      return { value };
    case 4:
      return typeof value === 'string' ? value.repeat(1 + random(50)) : JSON.stringify(value);
    case 5:
      return typeof value === 'string' ? value.slice(0, random(value.length + 1)) : 'x'.repeat(random(5000));
    default:
      return anyJson(random);
  }
}

export function toJsonText(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replaceAll(
    /"\\u0001raw:((?:[^"\\]|\\.)*)"/g,
    (_whole, text: string) => JSON.parse(`"${text}"`) as string,
  );
}
