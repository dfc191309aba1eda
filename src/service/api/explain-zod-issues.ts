// Turns what zod refuses of a request into the sentences of kernel/explain-schema-errors: zod's own wording never
// reaches a client. A message that a schema of ours gives for a form ("a label is name=value") is used as the rule.
import { z } from 'zod';
import { explainSchemaErrors, type SchemaError } from '../../kernel/explain-schema-errors.js';

// An issue as fastify-type-provider-zod hands it over.
export interface ZodProblem {
  readonly keyword?: string;
  readonly instancePath: string;
  readonly message?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface ExplainedProblem {
  readonly path: string;
  readonly message: string;
}

export interface RefusedPart {
  // The part of the request, as a person calls it: "body", "query".
  readonly name: string;
  readonly value: unknown;
  // The zod schema that refused it, for the names that are known.
  readonly schema: unknown;
}

const MAX_PROBLEMS = 20;
const DEFAULT_WORDING = /^Invalid /;
const TYPES: Readonly<Record<string, string>> = {
  int: 'integer',
  nan: 'number',
  record: 'object',
  map: 'object',
  set: 'array',
  tuple: 'array',
};

export function explainZodIssues(issues: readonly ZodProblem[], part: RefusedPart): readonly ExplainedProblem[] {
  return issues.slice(0, MAX_PROBLEMS).flatMap((issue) => {
    const errors = toSchemaErrors(issue, part);
    return errors.map((error) => ({ path: issue.instancePath, message: explainSchemaErrors([error], part) }));
  });
}

function toSchemaErrors(issue: ZodProblem, part: RefusedPart): readonly SchemaError[] {
  const { keyword: code = '', params = {}, message = '' } = issue;
  // zod names the whole value by "/".
  const instancePath = issue.instancePath === '/' ? '' : issue.instancePath;
  const error = (keyword: string, more: SchemaError['params'] = {}, rest: Partial<SchemaError> = {}): SchemaError[] => [
    { keyword, instancePath, schemaPath: '', params: more, ...rest },
  ];
  switch (code) {
    case 'invalid_type':
      if (isMissing(instancePath, part.value)) return missing(instancePath);
      if (message !== '' && !DEFAULT_WORDING.test(message))
        return error('format', {}, { parentSchema: { description: message } });
      return error('type', { type: typeOf(params['expected']) });
    case 'too_big':
      return error(limitOf(params, 'max'), { limit: params['maximum'] });
    case 'too_small':
      return error(limitOf(params, 'min'), { limit: params['minimum'] });
    case 'invalid_format': {
      const rule = DEFAULT_WORDING.test(message) ? {} : { parentSchema: { description: message } };
      const format = String(params['format']);
      const keyword = format === 'regex' ? 'pattern' : 'format';
      return error(keyword, { pattern: params['pattern'], format }, rule);
    }
    case 'invalid_value':
      return error('enum', { allowedValues: params['values'] });
    case 'unrecognized_keys': {
      const parentSchema = instancePath === '' ? { properties: namesOf(part.schema) } : undefined;
      const keys = ((params['keys'] ?? []) as string[]).slice(0, MAX_PROBLEMS);
      return keys.flatMap((key) => error('additionalProperties', { additionalProperty: key }, { parentSchema }));
    }
    case 'invalid_union': {
      const branches = ((params['errors'] ?? []) as { expected?: unknown }[][]).flat();
      const types = branches.map(({ expected }) => typeOf(expected));
      return types.every((type) => type !== undefined) ? error('type', { type: types }) : error('anyOf');
    }
    case 'invalid_key': {
      const at = instancePath.lastIndexOf('/');
      const propertyName = instancePath
        .slice(at + 1)
        .replaceAll('~1', '/')
        .replaceAll('~0', '~');
      const [inner] = (params['issues'] ?? []) as ({ code?: string; message?: string } & Record<string, unknown>)[];
      const named = { keyword: inner?.code ?? '', instancePath, message: inner?.message, params: inner ?? {} };
      const outer = instancePath.slice(0, at);
      const [rule] = toSchemaErrors(named, part);
      return rule ? [{ ...rule, instancePath: outer, propertyName }] : error(code);
    }
    case 'not_multiple_of':
      return error('multipleOf', { multipleOf: params['divisor'] });
    default:
      return error(code);
  }
}

function missing(instancePath: string): SchemaError[] {
  const at = instancePath.lastIndexOf('/');
  const params = { missingProperty: instancePath.slice(at + 1) };
  return [{ keyword: 'required', instancePath: instancePath.slice(0, Math.max(at, 0)), schemaPath: '', params }];
}

function isMissing(instancePath: string, value: unknown): boolean {
  let at = value;
  for (const key of instancePath.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return true;
    at = (at as Record<string, unknown>)[key];
  }
  return false;
}

function limitOf({ origin, inclusive }: Readonly<Record<string, unknown>>, side: 'min' | 'max'): string {
  if (origin === 'string') return `${side}Length`;
  if (origin === 'array' || origin === 'set') return `${side}Items`;
  if (inclusive === false) return side === 'min' ? 'exclusiveMinimum' : 'exclusiveMaximum';
  return side === 'min' ? 'minimum' : 'maximum';
}

function typeOf(expected: unknown): string | undefined {
  return typeof expected === 'string' ? (TYPES[expected] ?? expected) : undefined;
}

// The members that an object schema knows, also behind optional and nullable.
function namesOf(schema: unknown): object | undefined {
  let at = schema;
  while (at instanceof z.ZodOptional || at instanceof z.ZodNullable) at = at.unwrap();
  return at instanceof z.ZodObject ? (at.shape as object) : undefined;
}
