// Turns the errors of the schema library into sentences for people: where, which rule, what was found instead.
// No wording of the library is passed on.
import { clip } from './redact.js';

export interface SchemaError {
  readonly keyword: string;
  // A JSON Pointer into the value.
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  // The offending value, or only its description where the value stays in another thread.
  readonly data?: unknown;
  readonly got?: string;
  // Our own schemas state the rule of a pattern in words (`rule`).
  readonly parentSchema?: { readonly rule?: unknown };
}

// A value that breaks every rule of a long schema is not listed in full.
const MOST_PROBLEMS = 5;
const MOST_CHARS = 100;

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
};

// `name` is what the checked value is called, as in "result.version: expected a string, got a number".
export function explainErrors(errors: readonly SchemaError[], name: string): string {
  const sentences = [...new Set(withoutSummaries(errors).map((error) => explainError(error, name)))];
  const rest = sentences.length - MOST_PROBLEMS;
  const shown = sentences.slice(0, MOST_PROBLEMS).join('; ');
  return rest > 0 ? `${shown}; and ${rest} more` : shown;
}

export function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number' || typeof value === 'boolean') return `${typeof value === 'number' ? 'the number ' : ''}${value}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

// "anyOf" and its kin only repeat that one of the errors below them exists.
function withoutSummaries(errors: readonly SchemaError[]): readonly SchemaError[] {
  const own = errors.filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'oneOf' && keyword !== 'if' && keyword !== 'propertyNames');
  return own.length > 0 ? own : errors;
}

function explainError({ keyword, instancePath, params, data, got, parentSchema }: SchemaError, name: string): string {
  const found = got ?? describeValue(data);
  const member = memberOf(keyword, params);
  const where = pathOf(instancePath, name) + (member === null ? '' : step(member));
  if (typeof parentSchema?.rule === 'string' && keyword === 'pattern') return `${where}: ${parentSchema.rule}`;
  return `${where}: ${ruleOf(keyword, params, found)}`;
}

// The member that an error is about, where the path leads only to its object.
function memberOf(keyword: string, params: SchemaError['params']): string | null {
  if (keyword === 'required' || keyword === 'dependentRequired' || keyword === 'dependencies') return String(params['missingProperty']);
  if (keyword === 'additionalProperties') return String(params['additionalProperty']);
  if (keyword === 'unevaluatedProperties') return String(params['unevaluatedProperty']);
  return null;
}

function ruleOf(keyword: string, params: SchemaError['params'], got: string): string {
  const limit = String(params['limit']);
  switch (keyword) {
    case 'type':
      return `expected ${typesOf(params['type'])}, got ${got}`;
    case 'required':
    case 'dependentRequired':
    case 'dependencies':
      return 'is missing';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not a known name here';
    case 'enum':
      return `expected one of ${clip((params['allowedValues'] as unknown[]).slice(0, 50).map((value) => shown(value)).join(', '), 300)}`;
    case 'const':
      return `expected ${shown(params['allowedValue'])}`;
    case 'minLength':
      return params['limit'] === 1 ? 'is empty' : `expected at least ${limit} characters`;
    case 'maxLength':
      return `is longer than ${limit} characters`;
    case 'pattern':
      return `does not match the pattern ${shown(params['pattern'])}`;
    case 'minimum':
      return `expected at least ${limit}, got ${got}`;
    case 'maximum':
      return `expected at most ${limit}, got ${got}`;
    case 'exclusiveMinimum':
      return `expected more than ${limit}, got ${got}`;
    case 'exclusiveMaximum':
      return `expected less than ${limit}, got ${got}`;
    case 'multipleOf':
      return `expected a multiple of ${String(params['multipleOf'])}, got ${got}`;
    case 'minItems':
      return `expected at least ${limit} items`;
    case 'maxItems':
    case 'unevaluatedItems':
    case 'items':
      return `has more than ${String(params['limit'] ?? params['len'])} items`;
    case 'uniqueItems':
      return `items ${String(params['j'])} and ${String(params['i'])} are equal`;
    case 'contains':
      return `expected at least ${String(params['minContains'] ?? 1)} items of the required form`;
    case 'minProperties':
      return `expected at least ${limit} names`;
    case 'maxProperties':
      return `has more than ${limit} names`;
    case 'propertyNames':
      return `has a name that is not allowed: ${shown(params['propertyName'])}`;
    case 'anyOf':
      return 'fits none of the allowed forms';
    case 'oneOf':
      return params['passingSchemas'] ? 'fits more than one of the forms of which exactly one is allowed' : 'fits none of the allowed forms';
    case 'not':
      return 'has a form that is excluded';
    case 'false schema':
      return 'is not allowed';
    default:
      return `breaks the rule ${shown(keyword)}`;
  }
}

function typesOf(type: unknown): string {
  const types = Array.isArray(type) ? type : [type];
  return types.map((one) => TYPE_NAMES[String(one)] ?? shown(one)).join(' or ');
}

// Values of a schema are quoted and clipped; control characters are escaped by JSON.
function shown(value: unknown): string {
  return clip(JSON.stringify(value) ?? String(value), MOST_CHARS);
}

function pathOf(pointer: string, name: string): string {
  const steps = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return clip(name + steps.map(step).join(''), 300);
}

function step(part: string): string {
  if (/^\d{1,15}$/.test(part)) return `[${part}]`;
  return /^[A-Za-z_$][\w$-]{0,99}$/.test(part) ? `.${part}` : `[${shown(part)}]`;
}
