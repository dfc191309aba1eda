// A SELECT with those conditions that are asked for; each combination is a prepared statement of its own.
import type { Statement } from './database.js';

export type Condition = false | readonly [sign: string, condition: string, ...values: (string | number)[]];

// The values stand where the question marks are.
export function buildSelect(
  name: string,
  select: string,
  asked: readonly Condition[],
  rest: string,
  ...restValues: (string | number)[]
): Statement {
  const given = asked.filter((each) => each !== false);
  const where = given.length === 0 ? '' : `WHERE ${given.map(([, condition]) => condition).join(' AND ')}`;
  let count = 0;
  const text = `${select} ${where} ${rest}`.replaceAll('?', () => `$${(count += 1)}`);
  return {
    name: `${name}:${given.map(([sign]) => sign).join('')}`,
    text,
    values: [...given.flatMap(([, , ...values]) => values), ...restValues],
  };
}
