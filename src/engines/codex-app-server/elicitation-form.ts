// Turns a form that an MCP server wants filled in into a question with a field for each property. The server's schema
// is untrusted and never executed: the rules for an answer are rebuilt from the few keywords that such forms have, and
// a form with other keywords is refused.
import { asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspField, RaspOption } from '../../contract/rasp-data.js';
import type { Question } from '../../run/interaction.js';

// Accepted instead of an answer to any form.
const REFUSAL: JsonObject = {
  type: 'object',
  required: ['decision'],
  properties: { decision: { enum: ['decline', 'cancel'] } },
  additionalProperties: false,
};
const MAX_FIELDS = 50;
const MAX_OPTIONS = 200;
const MAX_BYTES = 64 * 1024;
// Keywords of the form itself: our form has them anyway, or they add no rule.
const FORM_WORDS = ['$schema', 'type', 'title', 'description', 'properties', 'required', 'additionalProperties'];
// Keywords that describe a property and do not restrict its value.
const TELLING = ['title', 'description', 'default', 'enumNames', 'format'];
const CHOICES = ['enum', 'oneOf', 'anyOf'];
// Limits per type, because the type comes from the server as well.
const LIMITS = new Map([
  ['string', ['minLength', 'maxLength']],
  ['number', ['minimum', 'maximum']],
  ['integer', ['minimum', 'maximum']],
  ['array', ['minItems', 'maxItems']],
]);

// Returns null for a form that a person cannot be asked to fill in.
export function buildForm(requested: Json | undefined, prompt: string): Question | null {
  const schema = asObject(requested);
  const properties = asObject(schema?.properties);
  if (
    !schema ||
    schema.type !== 'object' ||
    !properties ||
    !hasOnly(schema, FORM_WORDS) ||
    JSON.stringify(schema).length > MAX_BYTES
  )
    return null;
  const names = Object.keys(properties);
  const required = schema.required ?? [];
  if (
    names.length > MAX_FIELDS ||
    !Array.isArray(required) ||
    !required.every((name) => typeof name === 'string' && names.includes(name))
  )
    return null;
  const fields: RaspField[] = [];
  const members: [string, JsonObject][] = [];
  for (const id of names) {
    const property = asObject(properties[id]);
    const member = property && memberOf(property);
    if (!property || !member) return null;
    fields.push(buildField(id, property));
    members.push([id, member]);
  }
  const form: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(members),
    required: [...new Set(required)],
    additionalProperties: false,
  };
  return {
    kind: 'fill_fields',
    prompt,
    options: [],
    fields,
    response_schema: { anyOf: [form, REFUSAL] },
    channel: 'native',
  };
}

function buildField(id: string, property: JsonObject): RaspField {
  const options = optionsOf(property);
  const prompt =
    [asString(property.title), asString(property.description)]
      .filter((text) => text !== undefined && text !== '')
      .join(': ') || id;
  const kind = property.type === 'boolean' ? 'confirm' : options.length > 0 ? 'choose_one' : 'open_text';
  return { id, kind, prompt, options, default: property.default };
}

// Describes what a value must be; null if the property has an unknown keyword.
function memberOf(property: JsonObject): JsonObject | null {
  const { type } = property;
  const choices = choicesOf(property);
  if (choices === null) return null;
  const limits = LIMITS.get(asString(type) ?? '');
  if (
    !hasOnly(property, [
      'type',
      ...TELLING,
      ...(limits ?? []),
      ...(choices.length > 0 ? CHOICES : []),
      ...(type === 'array' ? ['items', 'uniqueItems'] : []),
    ])
  )
    return null;
  if (choices.length > 0) return type === undefined || type === 'string' ? { enum: choices } : null;
  if (type === 'boolean') return { type };
  if (!limits?.every((name) => isLimit(name, property[name]))) return null;
  const bounds = Object.fromEntries(
    limits.flatMap((name) => (property[name] === undefined ? [] : [[name, property[name]]])),
  ) as JsonObject;
  if (type === 'string') return { type, ...bounds };
  // People type numbers as text.
  if (type === 'number' || type === 'integer')
    return {
      anyOf: [
        { type, ...bounds },
        { type: 'string', pattern: type === 'integer' ? '^-?\\d{1,15}$' : '^-?\\d{1,15}(\\.\\d{1,15})?$' },
      ],
    };
  const items = asObject(property.items);
  const each =
    items && hasOnly(items, ['type', ...TELLING, ...CHOICES]) && (items.type ?? 'string') === 'string'
      ? choicesOf(items)
      : null;
  return each && each.length > 0 ? { type: 'array', items: { enum: each }, ...bounds } : null;
}

function hasOnly(value: JsonObject, words: readonly string[]): boolean {
  return Object.keys(value).every((name) => words.includes(name));
}

// An invalid limit would make every answer, and even a refusal, impossible to check.
function isLimit(name: string, value: Json | undefined): boolean {
  return (
    value === undefined ||
    (name === 'minimum' || name === 'maximum'
      ? Number.isFinite(value)
      : Number.isSafeInteger(value) && Number(value) >= 0)
  );
}

// The texts to choose from; an empty array means that any value is allowed.
function choicesOf(property: JsonObject): string[] | null {
  const values = optionsOf(property).map(({ value }) => value);
  const lists = [property.enum, property.oneOf, property.anyOf].filter((list) => list !== undefined);
  if (property.type === 'array') return lists.length > 0 ? null : [];
  if (lists.length === 0) return [];
  const texts = values.filter((value) => typeof value === 'string');
  const [list] = lists;
  return lists.length === 1 &&
    Array.isArray(list) &&
    list.length === texts.length &&
    texts.length > 0 &&
    texts.length <= MAX_OPTIONS
    ? texts
    : null;
}

function optionsOf(property: JsonObject): RaspOption[] {
  const items = property.type === 'array' ? asObject(property.items) : undefined;
  // Where several may be chosen, each option is an answer of its own.
  if (items) return optionsOf(items).map(({ label, value, description }) => ({ label, value: [value], description }));
  if (Array.isArray(property.enum)) {
    const names = Array.isArray(property.enumNames) ? property.enumNames : [];
    return property.enum.map((value, index) => ({ label: asString(names[index]) ?? labelOf(value), value }));
  }
  const titled = Array.isArray(property.oneOf) ? property.oneOf : Array.isArray(property.anyOf) ? property.anyOf : [];
  return titled.flatMap((entry) => {
    const option = asObject(entry);
    return option?.const === undefined
      ? []
      : [
          {
            label: asString(option.title) ?? labelOf(option.const),
            value: option.const,
            description: asString(option.description),
          },
        ];
  });
}

function labelOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
