// Turns the errors of a JSON Schema validator (Ajv) into sentences that name the field, the value and the rule, as
// phrases. The library's own wording never reaches a person. Pure, and bounded: however many errors there are and
// however large the value is, the text is short.
import { nearestName } from '../kernel/nearest-name.js';
import { clip } from '../kernel/redact.js';
import { formOf } from './forms.js';
import type { Phrase, Term } from '../kernel/fill-template.js';
import { phrase } from './phrase.js';

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
  readonly name: Phrase;
  readonly value: unknown;
}

const MAX_SENTENCES = 5;
const MAX_VALUE_CHARS = 80;
const MAX_NAME_CHARS = 60;
const MAX_LISTED = 12;
// The limit for comparing errors with each other: a hostile value has as many errors as members.
const MAX_ERRORS = 200;

const TYPE_NAMES: Readonly<Record<string, Term>> = {
  string: phrase('text'),
  number: phrase('number'),
  integer: phrase('integer'),
  boolean: phrase('boolean'),
  array: phrase('list'),
  object: phrase('object'),
  null: 'null',
};

// Returns complete sentences. Never empty: a value that was refused without a reason still needs a message.
export function explainSchemaErrors(
  errors: readonly SchemaError[] | null | undefined,
  subject: ExplainedValue,
): readonly Phrase[] {
  const first = (errors ?? []).slice(0, MAX_ERRORS);
  const sentences = withoutBranches(first).map((error) => sentenceOf(error, subject, first));
  const different = [...new Map(sentences.map((sentence) => [JSON.stringify(sentence), sentence])).values()];
  if (different.length === 0) return [phrase('unfit', { field: subject.name })];
  const more = different.length - MAX_SENTENCES;
  const rest = more > 0 ? [more === 1 ? phrase('one_more') : phrase('more', { count: more })] : [];
  return [...different.slice(0, MAX_SENTENCES), ...rest];
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

function sentenceOf(error: SchemaError, subject: ExplainedValue, all: readonly SchemaError[]): Phrase {
  const at = locate(error.instancePath, subject);
  const { keyword, params, propertyName } = error;
  if (propertyName !== undefined) {
    const name = quote(propertyName);
    return phrase('cannot_be_name', { name, field: at.inside, because: reasonOf(error, propertyName) });
  }
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
    case 'dependencies': {
      const name = quote(params['missingProperty']);
      return at.isWhole ? phrase('missing', { name }) : phrase('missing_in', { name, field: at.inside });
    }
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return unknownName(String(params['additionalProperty'] ?? params['unevaluatedProperty']), at, error);
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      if (params['limit'] === 1) return phrase('empty', { field: at.title });
      return phrase('too_short', { field: at.name, because: reasonOf(error, at.value) });
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return phrase('too_long', { field: at.name, size: sizeOf(at.value), because: reasonOf(error, at.value) });
    case 'anyOf':
    case 'oneOf':
      return phrase('cannot_be', { field: at.name, value: show(at.value), because: choiceOf(error, all, subject) });
    case 'pattern':
      if (typeof at.value === 'string' && at.value.trim() === '') return phrase('empty', { field: at.title });
      break;
    default:
  }
  return phrase('cannot_be', { field: at.name, value: show(at.value), because: reasonOf(error, at.value) });
}

// The rule that the value breaks, as a clause without a full stop.
function reasonOf({ keyword, params, parentSchema }: SchemaError, value: unknown): Phrase {
  const limit = params['limit'] as string | number;
  const description = (parentSchema as { readonly description?: unknown } | undefined)?.description;
  const isForm = keyword === 'pattern' || keyword === 'format';
  if (typeof description === 'string' && isForm) return phrase('takes', { form: formOf(description) });
  switch (keyword) {
    case 'type':
    case 'enum':
    case 'const':
      return phrase('takes', { form: listOf(acceptedBy({ keyword, params })) });
    case 'minimum':
    case 'formatMinimum':
      return phrase('least', { limit });
    case 'maximum':
    case 'formatMaximum':
      return phrase('most', { limit });
    case 'exclusiveMinimum':
      return phrase('above', { limit });
    case 'exclusiveMaximum':
      return phrase('below', { limit });
    case 'multipleOf':
      return phrase('multiple', { factor: String(params['multipleOf']) });
    case 'minLength':
      return limit === 1 ? phrase('nonempty') : phrase('least_characters', { limit });
    case 'maxLength':
      return phrase('most_characters', { limit });
    case 'minItems':
      return phrase('least_items', { limit });
    case 'maxItems':
      return phrase('most_items', { limit });
    case 'minProperties':
      return phrase('least_members', { limit });
    case 'maxProperties':
      return phrase('most_members', { limit });
    case 'uniqueItems':
      return phrase('same_items', { first: String(params['j']), second: String(params['i']) });
    case 'pattern':
      if (typeof value === 'string' && value.includes('\u0000')) return phrase('nul');
      return phrase('pattern', { pattern: clip(String(params['pattern']), MAX_VALUE_CHARS) });
    case 'format':
      return phrase('format', { format: clip(String(params['format']), MAX_NAME_CHARS) });
    case 'contains':
      return phrase('contains');
    case 'not':
      return phrase('ruled_out');
    case 'false schema':
      return phrase('nothing_allowed');
    case 'unevaluatedItems':
    case 'additionalItems':
    case 'items': {
      const most = limit ?? params['len'];
      return most === undefined ? phrase('fewer_items') : phrase('items_at_most', { limit: String(most) });
    }
    default:
      return phrase('breaks', { keyword: clip(keyword, MAX_NAME_CHARS) });
  }
}

// The types or values that a rule accepts.
function acceptedBy({ keyword, params }: Pick<SchemaError, 'keyword' | 'params'>): readonly Term[] {
  if (keyword === 'type') return ([] as unknown[]).concat(params['type'] ?? []).map(typeName);
  if (keyword === 'const') return [show(params['allowedValue'])];
  return ((params['allowedValues'] ?? []) as unknown[]).map(show);
}

function typeName(type: unknown): Term {
  return TYPE_NAMES[String(type)] ?? clip(String(type), MAX_NAME_CHARS);
}

function unknownName(text: string, at: Place, { parentSchema }: SchemaError): Phrase {
  const properties = (parentSchema as { readonly properties?: object } | undefined)?.properties;
  const name = quote(text);
  const field = at.inside;
  if (properties === undefined)
    return at.isWhole ? phrase('unknown_name', { name }) : phrase('unknown_name_in', { name, field });
  const known = Object.keys(properties);
  const near = nearestName(text, known);
  if (near !== null) {
    const nearest = quote(near);
    return at.isWhole
      ? phrase('misspelled_name', { name, nearest })
      : phrase('misspelled_name_in', { name, field, nearest });
  }
  const names = known.slice(0, 40).join(', ');
  if (known.length === 1)
    return at.isWhole ? phrase('only_name', { name, names }) : phrase('only_name_in', { name, field, names });
  return at.isWhole ? phrase('unlisted_name', { name, names }) : phrase('unlisted_name_in', { name, field, names });
}

// The types that a choice accepts, or the first reason why its first branch does not match.
function choiceOf(choice: SchemaError, all: readonly SchemaError[], subject: ExplainedValue): Phrase {
  if (Array.isArray(choice.params['passingSchemas'])) return phrase('several_forms');
  const branches = all.filter((error) => error !== choice && isInside(error, choice));
  const isPlain = ({ keyword, instancePath }: SchemaError): boolean =>
    ['type', 'const', 'enum'].includes(keyword) && instancePath === choice.instancePath;
  if (branches.length > 0 && branches.every(isPlain)) {
    const accepted = branches.flatMap(acceptedBy);
    const different = [...new Map(accepted.map((term) => [JSON.stringify(term), term])).values()];
    return phrase('takes', { form: listOf(different) });
  }
  const first = branches.find(({ keyword }) => keyword !== 'anyOf' && keyword !== 'oneOf');
  return first ? phrase('no_form_example', { example: sentenceOf(first, subject, all) }) : phrase('no_form');
}

interface Place {
  // `name` is for the start of a sentence, `inside` for the middle of one.
  readonly name: Term;
  // Like `name`, with an article if it is one plain word.
  readonly title: Term;
  readonly inside: Term;
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
  if (path === '') {
    const title = phrase('titled', { name });
    return { name: title, title, inside: phrase('whole', { name }), isWhole: true, value };
  }
  const inside = clip(path, 3 * MAX_NAME_CHARS);
  const title = /^[a-z]+$/.test(inside) ? phrase('titled', { name: inside }) : inside;
  return { name: inside, title, inside, isWhole: false, value: hideSecret(path, at) };
}

// Does not repeat a refused secret, because the message may end up in a log.
function hideSecret(path: string, value: unknown): unknown {
  return /(?:token|secret|password)$/i.test(path) && typeof value === 'string' ? '…' : value;
}

function sizeOf(value: unknown): Phrase {
  if (typeof value === 'string') return phrase('characters', { count: value.length });
  if (Array.isArray(value)) return phrase('items', { count: value.length });
  return phrase('members', { count: Object.keys(value ?? {}).length });
}

// Shows a value in a few characters; a large value only by its type.
export function show(value: unknown): Phrase | string {
  if (value === undefined) return phrase('left_out');
  if (typeof value === 'string') return quote(value, MAX_VALUE_CHARS);
  if (Array.isArray(value))
    return value.length === 0 ? phrase('empty_list') : phrase('list_of', { count: value.length });
  return typeof value === 'object' && value !== null ? phrase('object') : String(value);
}

function quote(value: unknown, chars = MAX_NAME_CHARS): string {
  return JSON.stringify(clip(String(value), chars));
}

// "a, b or c".
function listOf(terms: readonly Term[]): Term {
  if (terms.length === 0) return phrase('nothing');
  const more = terms.length - MAX_LISTED;
  return more > 0 ? [...terms.slice(0, MAX_LISTED), phrase('others', { count: more })] : [...terms];
}
