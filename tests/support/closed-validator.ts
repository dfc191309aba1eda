// The published schemas are open, so that readers survive later versions. Our own events must name nothing undeclared:
// this closes every object that has declared members.
import { readFileSync } from 'node:fs';
import { createValidator } from '../../src/messages/validator.js';

export function closedValidator(file: string): (value: unknown) => string | null {
  const schema = JSON.parse(readFileSync(new URL(`../../contract/${file}`, import.meta.url), 'utf8')) as {
    allOf: unknown;
    $defs: object;
  };
  // The conditions in allOf speak of parts of the envelope: they stay open.
  const closed = { ...(close({ ...schema, allOf: [] }) as object), allOf: schema.allOf } as unknown as {
    $defs: object;
  };
  return createValidator(closed).whole;
}

function close(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(close);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, close(value)])) as Record<
    string,
    unknown
  >;
  // `data` is open in the envelope; its definition closes it.
  if (copy.type === 'object' && copy.properties && copy.additionalProperties === undefined)
    copy.additionalProperties = false;
  return copy;
}
