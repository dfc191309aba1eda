// Turns the issues of zod schemas into the sentences of explain-schema-errors: the wording of zod never reaches a
// person. A message that one of our schemas sets for a rule is a form (forms.ts): it completes "it takes …".
import * as z from 'zod';
import { explainSchemaErrors, type SchemaError } from './explain-schema-errors.js';
import type { Phrase } from '../kernel/fill-template.js';

// An issue in the form of fastify-type-provider-zod.
export interface ZodProblem {
  readonly keyword?: string;
  readonly instancePath: string;
  readonly message?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface ExplainedProblem {
  readonly path: string;
  readonly sentences: readonly Phrase[];
}

export interface RefusedPart {
  // The name of the whole value for people: "body", "query", "config".
  readonly name: Phrase;
  readonly value: unknown;
  // The zod schema that refused the value; it provides the known names.
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

// Explains each issue by itself, with its place.
export function explainZodIssues(issues: readonly ZodProblem[], part: RefusedPart): readonly ExplainedProblem[] {
  return issues.slice(0, MAX_PROBLEMS).flatMap((issue) => {
    const errors = toSchemaErrors(issue, part);
    return errors.map((error) => ({ path: issue.instancePath, sentences: explainSchemaErrors([error], part) }));
  });
}

// Creates a check that returns null for a valid value, and otherwise a few sentences. `name` is the name of the whole
// value in these sentences.
export function createZodCheck(schema: z.ZodType, name: Phrase): (value: unknown) => readonly Phrase[] | null {
  return (value) => {
    const { error } = schema.safeParse(value);
    return error ? explainZodError(error, { name, value, schema }) : null;
  };
}

// Explains all issues in a few sentences.
export function explainZodError({ issues }: Pick<z.ZodError, 'issues'>, part: RefusedPart): readonly Phrase[] {
  const errors = issues.flatMap(({ code, path, message, ...params }) =>
    toSchemaErrors({ keyword: code, instancePath: pointerOf(path), message, params }, part),
  );
  return explainSchemaErrors(errors, part);
}

function toSchemaErrors(issue: ZodProblem, part: RefusedPart): readonly SchemaError[] {
  const { keyword: code = '', params = {}, message = '' } = issue;
  // fastify-type-provider-zod writes the path of the whole value as "/".
  const instancePath = issue.instancePath === '/' ? '' : issue.instancePath;
  const error = (keyword: string, more: SchemaError['params'] = {}, rest: Partial<SchemaError> = {}): SchemaError[] => [
    { keyword, instancePath, schemaPath: '', params: more, ...rest },
  ];
  const ownRule = (): SchemaError[] => error('format', {}, { parentSchema: { description: message } });
  const hasOwnRule = message !== '' && !DEFAULT_WORDING.test(message);
  switch (code) {
    case 'invalid_type':
      if (isMissing(instancePath, part.value)) return missing(instancePath);
      if (hasOwnRule) return ownRule();
      return error('type', { type: typesOf(params['expected'], schemaAt(instancePath, part.schema)) });
    case 'too_big':
      return error(limitOf(params, 'max'), { limit: params['maximum'] });
    case 'too_small':
      return error(limitOf(params, 'min'), { limit: params['minimum'] });
    case 'invalid_format': {
      const rule = hasOwnRule ? { parentSchema: { description: message } } : {};
      const format = String(params['format']);
      const keyword = format === 'regex' ? 'pattern' : 'format';
      return error(keyword, { pattern: params['pattern'], format }, rule);
    }
    case 'invalid_value':
      return error('enum', { allowedValues: params['values'] });
    case 'unrecognized_keys': {
      const properties = namesOf(schemaAt(instancePath, part.schema));
      const parentSchema = properties && { properties };
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
      const propertyName = decode(instancePath.slice(at + 1));
      const [inner] = (params['issues'] ?? []) as ({ code?: string; message?: string } & Record<string, unknown>)[];
      const named = { keyword: inner?.code ?? '', instancePath, message: inner?.message, params: inner ?? {} };
      const outer = instancePath.slice(0, at);
      const [rule] = toSchemaErrors(named, part);
      return rule ? [{ ...rule, instancePath: outer, propertyName }] : error(code);
    }
    case 'not_multiple_of':
      return error('multipleOf', { multipleOf: params['divisor'] });
    case 'custom':
      return ownRule();
    default:
      return error(code);
  }
}

function missing(instancePath: string): SchemaError[] {
  const at = instancePath.lastIndexOf('/');
  const params = { missingProperty: decode(instancePath.slice(at + 1)) };
  return [{ keyword: 'required', instancePath: instancePath.slice(0, Math.max(at, 0)), schemaPath: '', params }];
}

function isMissing(instancePath: string, value: unknown): boolean {
  let at = value;
  for (const key of keysOf(instancePath)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return true;
    at = (at as Record<string, unknown>)[key];
  }
  return false;
}

function limitOf({ origin, inclusive }: Readonly<Record<string, unknown>>, side: 'min' | 'max'): string {
  if (origin === 'string') return `${side}Length`;
  if (origin === 'array' || origin === 'set') return `${side}Items`;
  if (origin === 'object') return `${side}Properties`;
  if (inclusive === false) return side === 'min' ? 'exclusiveMinimum' : 'exclusiveMaximum';
  return side === 'min' ? 'minimum' : 'maximum';
}

function typeOf(expected: unknown): string | undefined {
  return typeof expected === 'string' ? (TYPES[expected] ?? expected) : undefined;
}

// The schema of a part of the value, as it is written: optional, nullable and default schemas are not unwrapped.
function schemaAt(instancePath: string, schema: unknown): unknown {
  let at = schema;
  for (const key of keysOf(instancePath)) {
    const inner = unwrap(at);
    if (inner instanceof z.ZodObject) at = Object.hasOwn(inner.shape, key) ? inner.shape[key] : undefined;
    else if (inner instanceof z.ZodArray) at = inner.element;
    else if (inner instanceof z.ZodRecord) at = inner.valueType;
    else return undefined;
  }
  return at;
}

type Wrapper = z.ZodOptional | z.ZodExactOptional | z.ZodNullable | z.ZodDefault | z.ZodPrefault;

function isWrapper(schema: unknown): schema is Wrapper {
  return [z.ZodOptional, z.ZodExactOptional, z.ZodNullable, z.ZodDefault, z.ZodPrefault].some(
    (kind) => schema instanceof kind,
  );
}

function unwrap(schema: unknown): unknown {
  let at = schema;
  while (isWrapper(at) || at instanceof z.ZodPipe) at = isWrapper(at) ? at.unwrap() : at.in;
  return at;
}

// The types that a schema takes. zod reports "number" for a text in place of a whole number, and does not mention null.
function typesOf(expected: unknown, schema: unknown): readonly (string | undefined)[] {
  const inner = unwrap(schema);
  const type = inner instanceof z.ZodNumber && inner.isInt ? 'integer' : typeOf(expected);
  for (let at = schema; isWrapper(at); at = at.unwrap()) if (at instanceof z.ZodNullable) return [type, 'null'];
  return [type];
}

function namesOf(schema: unknown): object | undefined {
  const inner = unwrap(schema);
  return inner instanceof z.ZodObject ? (inner.shape as object) : undefined;
}

function pointerOf(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function keysOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(decode);
}

function decode(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
