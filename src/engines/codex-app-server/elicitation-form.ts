// A form that an MCP server wants filled in, as a question with a field for each of its properties.
import { asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspField, RaspOption } from '../../contract/rasp-data.js';
import type { Question } from '../../run/interaction.js';

// Instead of an answer, whatever the form asks for.
const REFUSAL: JsonObject = { type: 'object', required: ['decision'], properties: { decision: { enum: ['decline', 'cancel'] } }, additionalProperties: false };

// Null: it is not the schema of an object.
export function buildForm(requested: Json | undefined, prompt: string): Question | null {
  const schema = asObject(requested);
  const properties = asObject(schema?.properties);
  if (!schema || schema.type !== 'object' || !properties) return null;
  const fields = Object.entries(properties).map(([id, property]) => buildField(id, asObject(property) ?? {}));
  return { kind: 'fill_fields', prompt, options: [], fields, response_schema: { anyOf: [schema, REFUSAL] }, channel: 'native' };
}

function buildField(id: string, property: JsonObject): RaspField {
  const options = optionsOf(property);
  const prompt = [asString(property.title), asString(property.description)].filter((text) => text !== undefined && text !== '').join(': ') || id;
  const kind = property.type === 'boolean' ? 'confirm' : options.length > 0 ? 'choose_one' : 'open_text';
  return { id, kind, prompt, options, default: property.default };
}

function optionsOf(property: JsonObject): RaspOption[] {
  const items = property.type === 'array' ? asObject(property.items) : undefined;
  // Of several that may be chosen, each is an answer of its own.
  if (items) return optionsOf(items).map(({ label, value, description }) => ({ label, value: [value], description }));
  if (Array.isArray(property.enum)) {
    const names = Array.isArray(property.enumNames) ? property.enumNames : [];
    return property.enum.map((value, index) => ({ label: asString(names[index]) ?? labelOf(value), value }));
  }
  const titled = Array.isArray(property.oneOf) ? property.oneOf : Array.isArray(property.anyOf) ? property.anyOf : [];
  return titled.flatMap((entry) => {
    const option = asObject(entry);
    return option?.const === undefined ? [] : [{ label: asString(option.title) ?? labelOf(option.const), value: option.const, description: asString(option.description) }];
  });
}

function labelOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
