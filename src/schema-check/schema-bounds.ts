// Limits JSON Schemas from callers and engines: in size, depth and number of parts, and without keywords that make a
// check asynchronous or refer outside the schema. The cost is bounded by these limits for any input.
import { clip } from '../kernel/redact.js';
import type { Phrase } from '../kernel/fill-template.js';
import { phrase } from '../messages/phrase.js';

// A schema of 1,000 members with descriptions has about 100 KiB and 5,000 parts.
const MAX_CHARS = 256 * 1024;
const MAX_PARTS = 10_000;
const MAX_SCHEMA_DEPTH = 64;

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';
const REFUSED = new Set([
  '$async',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$vocabulary',
]);
// Below these keywords, names belong to the caller's data and not to the schema language.
const NAMED_PARTS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
]);
const PLAIN_DATA = new Set(['const', 'enum', 'default', 'examples']);

type Reading = 'schema' | 'names' | 'data';

interface Part {
  readonly value: unknown;
  readonly depth: number;
  readonly reading: Reading;
}

// Returns why a schema cannot be used, as the end of a sentence, or null if it is within the limits.
export function explainBounds(schema: unknown): Phrase | null {
  let chars = 0;
  let parts = 0;
  const open: Part[] = [{ value: schema, depth: 0, reading: 'schema' }];
  for (let part = open.pop(); part; part = open.pop()) {
    parts += 1;
    chars += typeof part.value === 'string' ? part.value.length : 8;
    if (part.depth > MAX_SCHEMA_DEPTH) return phrase('schema_depth', { limit: MAX_SCHEMA_DEPTH });
    if (typeof part.value === 'object' && part.value !== null) {
      if (Array.isArray(part.value) && part.value.length > MAX_PARTS) return tooMany();
      for (const key of Object.keys(part.value)) {
        chars += key.length;
        if (chars > MAX_CHARS) return tooLarge();
        if (parts + open.length >= MAX_PARTS) return tooMany();
        const value = (part.value as Record<string, unknown>)[key];
        const problem = part.reading === 'schema' && !Array.isArray(part.value) ? explainKeyword(key, value) : null;
        if (problem !== null) return problem;
        open.push({ value, depth: part.depth + 1, reading: readingOf(part, key) });
      }
    }
    if (chars > MAX_CHARS) return tooLarge();
  }
  return null;
}

function tooLarge(): Phrase {
  return phrase('schema_size', { limit: MAX_CHARS / 1024 });
}

function tooMany(): Phrase {
  return phrase('schema_parts', { limit: MAX_PARTS });
}

function readingOf({ value, reading }: Part, key: string): Reading {
  if (reading === 'data') return 'data';
  if (reading === 'names' || Array.isArray(value)) return 'schema';
  return PLAIN_DATA.has(key) ? 'data' : NAMED_PARTS.has(key) ? 'names' : 'schema';
}

function explainKeyword(key: string, value: unknown): Phrase | null {
  if (REFUSED.has(key)) return phrase('schema_keyword', { keyword: key });
  if (key === '$ref' && (typeof value !== 'string' || !value.startsWith('#')))
    return phrase('schema_outside', { reference: clip(JSON.stringify(value) ?? '', 100) });
  if (key === '$schema' && value !== DRAFT && value !== `${DRAFT}#`) return phrase('schema_draft', { draft: DRAFT });
  return null;
}
