// Turns the errors of a JSON Schema validator (Ajv) into sentences that name the field, the value and the rule.
// The library's own wording never reaches a person. Pure, and bounded: however many errors there are and however
// large the value is, the text is short.
import { nearestName } from './nearest-name.js';
import { clip } from './redact.js';

// The members of an Ajv ErrorObject that are used. With Ajv's `verbose` there is also parentSchema; its `description`
// then states the rule.
export interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly propertyName?: string | undefined;
  readonly parentSchema?: unknown;
}

export interface ExplainedValue {
  // The name of the whole value in the sentences: "request", "result".
  readonly name: string;
  readonly value: unknown;
}

const MAX_SENTENCES = 5;
const MAX_VALUE_CHARS = 80;
const MAX_NAME_CHARS = 60;
const MAX_LISTED = 12;
// The limit for comparing errors with each other: a hostile value has as many errors as members.
const MAX_ERRORS = 200;

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
};

// Returns complete sentences. Never empty: a value that was refused without a reason still needs a message.
export function explainSchemaErrors(
  errors: readonly SchemaError[] | null | undefined,
  subject: ExplainedValue,
): string {
  const first = (errors ?? []).slice(0, MAX_ERRORS);
  const sentences = [...new Set(withoutBranches(first).map((error) => sentenceOf(error, subject, first)))];
  if (sentences.length === 0) return `The ${subject.name} does not fit its schema.`;
  const more = sentences.length - MAX_SENTENCES;
  const rest = more > 0 ? [`And ${more} more ${more === 1 ? 'problem' : 'problems'}.`] : [];
  return [...sentences.slice(0, MAX_SENTENCES), ...rest].join(' ');
}

// Drops the errors of a choice's branches, which the error of the choice covers, and the errors of propertyNames and if
// when another error is more specific.
function withoutBranches(errors: readonly SchemaError[]): readonly SchemaError[] {
  const isChoice = ({ keyword }: SchemaError): boolean => keyword === 'anyOf' || keyword === 'oneOf';
  const choices = errors.filter(isChoice);
  return errors.filter((error) => {
    const isSummary = error.keyword === 'propertyNames' || error.keyword === 'if';
    if (isSummary) return !errors.some((other) => other !== error && isInside(other, error));
    return !choices.some((choice) => choice !== error && isInside(error, choice));
  });
}

function isInside(error: SchemaError, outer: SchemaError): boolean {
  if (outer.keyword === 'if') {
    const failing = String(outer.params['failingKeyword'] ?? 'then');
    return error.schemaPath.startsWith(outer.schemaPath.replace(/if$/, failing));
  }
  const isBelow = error.instancePath === outer.instancePath || error.instancePath.startsWith(`${outer.instancePath}/`);
  return isBelow && error.schemaPath.startsWith(`${outer.schemaPath}/`);
}

function sentenceOf(error: SchemaError, subject: ExplainedValue, all: readonly SchemaError[]): string {
  const at = locate(error.instancePath, subject);
  const { keyword, params, propertyName } = error;
  if (propertyName !== undefined) {
    return `${quote(propertyName)} cannot be a name in ${at.inside}: ${ruleOf(error, propertyName)}.`;
  }
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
    case 'dependencies':
      return `${quote(params['missingProperty'])} is missing${at.isWhole ? '' : ` in ${at.inside}`}.`;
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return unknownName(String(params['additionalProperty'] ?? params['unevaluatedProperty']), at, error);
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      if (params['limit'] === 1) return `${at.title} is empty.`;
      return `${at.name} is too short: ${ruleOf(error, at.value)}.`;
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return `${at.name} has ${sizeOf(at.value)}: ${ruleOf(error, at.value)}.`;
    case 'anyOf':
    case 'oneOf':
      return `${at.name} cannot be ${show(at.value)}: ${choiceOf(error, all, subject)}.`;
    case 'pattern':
      if (typeof at.value === 'string' && at.value.trim() === '') return `${at.title} is empty.`;
      return `${at.name} cannot be ${show(at.value)}: ${ruleOf(error, at.value)}.`;
    default:
      return `${at.name} cannot be ${show(at.value)}: ${ruleOf(error, at.value)}.`;
  }
}

// The rule that the value breaks, as a clause without a full stop.
function ruleOf({ keyword, params, parentSchema }: SchemaError, value: unknown): string {
  const { limit } = params as { readonly limit?: number };
  const description = (parentSchema as { readonly description?: unknown } | undefined)?.description;
  const isForm = keyword === 'pattern' || keyword === 'format';
  if (typeof description === 'string' && isForm) return `it takes ${description}`;
  switch (keyword) {
    case 'type':
      return `it takes ${listOf(([] as unknown[]).concat(params['type'] ?? []).map(typeName))}`;
    case 'enum':
      return `it takes ${listOf(((params['allowedValues'] ?? []) as unknown[]).map(show))}`;
    case 'const':
      return `it takes ${show(params['allowedValue'])}`;
    case 'minimum':
    case 'formatMinimum':
      return `the least is ${limit}`;
    case 'maximum':
    case 'formatMaximum':
      return `the most is ${limit}`;
    case 'exclusiveMinimum':
      return `it takes a number above ${limit}`;
    case 'exclusiveMaximum':
      return `it takes a number below ${limit}`;
    case 'multipleOf':
      return `it takes a multiple of ${String(params['multipleOf'])}`;
    case 'minLength':
      return limit === 1 ? 'it is empty' : `it takes at least ${limit} characters`;
    case 'maxLength':
      return `the most is ${limit} characters`;
    case 'minItems':
      return `it takes at least ${limit} items`;
    case 'maxItems':
      return `the most is ${limit}`;
    case 'minProperties':
      return `it takes at least ${limit} members`;
    case 'maxProperties':
      return `the most is ${limit}`;
    case 'uniqueItems':
      return `its items ${String(params['j'])} and ${String(params['i'])} are the same`;
    case 'pattern':
      if (typeof value === 'string' && value.includes('\u0000')) return 'it has a NUL character';
      return `it does not have the form ${clip(String(params['pattern']), MAX_VALUE_CHARS)}`;
    case 'format':
      return `it is not of the format ${clip(String(params['format']), MAX_NAME_CHARS)}`;
    case 'contains':
      return `too few or too many of its items fit the rule for them`;
    case 'not':
      return 'it is just what is ruled out';
    case 'false schema':
      return 'nothing is allowed there';
    case 'unevaluatedItems':
    case 'additionalItems':
    case 'items':
      return `it takes ${limit ?? String(params['len'] ?? 'fewer')} items at most`;
    default:
      return `it breaks the rule "${clip(keyword, MAX_NAME_CHARS)}"`;
  }
}

function typeName(type: unknown): string {
  return TYPE_NAMES[String(type)] ?? clip(String(type), MAX_NAME_CHARS);
}

function unknownName(name: string, at: Place, { parentSchema }: SchemaError): string {
  const properties = (parentSchema as { readonly properties?: object } | undefined)?.properties;
  const where = at.isWhole ? '' : ` in ${at.inside}`;
  if (properties === undefined) return `There is no ${quote(name)}${where}.`;
  const names = Object.keys(properties);
  const near = nearestName(name, names);
  if (near !== null) return `There is no ${quote(name)}${where}; did you mean ${quote(near)}?`;
  const are = names.length === 1 ? 'is' : 'are';
  return `There is no ${quote(name)}${where}; there ${are} ${names.slice(0, 40).join(', ')}.`;
}

// The types that a choice accepts, or the first reason why its first branch does not match.
function choiceOf(choice: SchemaError, all: readonly SchemaError[], subject: ExplainedValue): string {
  const passing = choice.params['passingSchemas'];
  if (Array.isArray(passing)) return 'it fits two of the forms that rule each other out';
  const branches = all.filter((error) => error !== choice && isInside(error, choice));
  const isPlain = ({ keyword, instancePath }: SchemaError): boolean =>
    ['type', 'const', 'enum'].includes(keyword) && instancePath === choice.instancePath;
  if (branches.length > 0 && branches.every(isPlain)) {
    const rules = branches.map((branch) => ruleOf(branch, null).replace(/^it takes /, ''));
    return `it takes ${listOf([...new Set(rules)])}`;
  }
  const first = branches.find(({ keyword }) => keyword !== 'anyOf' && keyword !== 'oneOf');
  const reason = first ? ` (for instance: ${sentenceOf(first, subject, all).replace(/[.?]$/, '')})` : '';
  return `it fits none of the forms that it may have${reason}`;
}

interface Place {
  // `name` is for the start of a sentence, `inside` for the middle of one.
  readonly name: string;
  // Like `name`, with an article if it is one plain word.
  readonly title: string;
  readonly inside: string;
  readonly isWhole: boolean;
  readonly value: unknown;
}

// Resolves a JSON pointer to a path such as "webhooks[0].url" and the value there.
function locate(pointer: string, { name, value }: ExplainedValue): Place {
  let at = value;
  let path = '';
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) path += `[${clip(key, MAX_NAME_CHARS)}]`;
    else path += /^[\w-]{1,60}$/.test(key) ? `${path === '' ? '' : '.'}${key}` : `[${quote(key)}]`;
    const hasMember = typeof at === 'object' && at !== null && Object.hasOwn(at, key);
    at = hasMember ? (at as Record<string, unknown>)[key] : undefined;
  }
  const isWhole = path === '';
  const inside = isWhole ? `the ${name}` : clip(path, 3 * MAX_NAME_CHARS);
  const title = isWhole || /^[a-z]+$/.test(inside) ? `The ${isWhole ? name : inside}` : inside;
  return { name: isWhole ? title : inside, title, inside, isWhole, value: hideSecret(path, at) };
}

// Does not repeat a refused secret, because the message may end up in a log.
function hideSecret(path: string, value: unknown): unknown {
  return /(?:token|secret|password)$/i.test(path) && typeof value === 'string' ? '…' : value;
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') return `${value.length} characters`;
  if (Array.isArray(value)) return `${value.length} items`;
  return `${Object.keys(value ?? {}).length} members`;
}

// Shows a value in a few characters; a large value only by its type.
export function show(value: unknown): string {
  if (value === undefined) return 'left out';
  if (typeof value === 'string') return quote(value, MAX_VALUE_CHARS);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length} items`;
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function quote(value: unknown, chars = MAX_NAME_CHARS): string {
  return JSON.stringify(clip(String(value), chars));
}

// "a, b or c".
function listOf(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED);
  const last = names.length > MAX_LISTED ? `one of ${names.length - MAX_LISTED} others` : shown.pop();
  return shown.length === 0 ? (last ?? 'nothing') : `${shown.join(', ')} or ${last}`;
}
