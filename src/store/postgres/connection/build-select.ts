// Builds a SELECT with the conditions that apply; each combination of conditions is its own prepared statement.
import type { Statement } from './database.js';

type Condition = false | readonly [sign: string, condition: string, ...values: (string | number)[]];

export interface Select {
  readonly select: string;
  readonly conditions: readonly Condition[];
  // The clauses after WHERE.
  readonly rest: readonly [text: string, ...values: (string | number)[]];
}

// The values replace the question marks.
export function buildSelect(name: string, { select, conditions, rest }: Select): Statement {
  const [restText, ...restValues] = rest;
  const active = conditions.filter((each) => each !== false);
  const where = active.length === 0 ? '' : `WHERE ${active.map(([, condition]) => condition).join(' AND ')}`;
  let count = 0;
  const text = `${select} ${where} ${restText}`.replaceAll('?', () => `$${(count += 1)}`);
  return {
    name: `${name}:${active.map(([sign]) => sign).join('')}`,
    text,
    values: [...active.flatMap(([, , ...values]) => values), ...restValues],
  };
}
