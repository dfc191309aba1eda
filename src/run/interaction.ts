// A question to a person, made whole from whatever the agent gave: never rejected for its shape.
import { asObject, asString, isObject, type Json, type JsonObject } from '../kernel/json.js';
import type { RaspField, RaspInteractionKind, RaspInteractionRequested, RaspOption } from '../contract/rasp-data.js';

export type InteractionKind = RaspInteractionKind;
export type Channel = NonNullable<RaspInteractionRequested['channel']>;

export interface Question {
  readonly kind: InteractionKind;
  readonly prompt: string;
  readonly options: readonly RaspOption[];
  readonly default?: Json | undefined;
  readonly fields?: readonly RaspField[] | undefined;
  readonly channel: Channel;
}

// Agents may not ask for an approval by themselves: that kind comes from an engine's own request only.
const KINDS: readonly InteractionKind[] = ['open_text', 'choose_one', 'confirm', 'fill_fields'];
const EMPTY_PROMPT = '(the agent asked without a text)';

// Reads the arguments of ask_human or the body of an ask_user envelope.
export function parseQuestion(input: Json | undefined, channel: Channel): Question {
  const body: JsonObject = asObject(input) ?? { prompt: input ?? '' };
  const prompt = promptOf(body);
  const options = parseOptions(body.options);
  const fields = parseFields(body.fields);
  return { kind: kindOf(body.kind, options, fields), prompt, options, default: body.default, fields: fields.length > 0 ? fields : undefined, channel };
}

// Several questions of one turn become one interaction with a field for each.
export function mergeQuestions(questions: readonly Question[]): Question | undefined {
  const [first] = questions;
  if (!first || questions.length === 1) return first;
  const fields = questions.map((question, index) => ({
    id: `q${index + 1}`,
    kind: question.kind,
    prompt: question.prompt,
    options: [...question.options],
    default: question.default,
  }));
  const prompt = questions.map((question, index) => `${index + 1}. ${question.prompt}`).join('\n');
  return { kind: 'fill_fields', prompt, options: [], fields, channel: first.channel };
}

function promptOf(body: JsonObject): string {
  const text = asString(body.prompt) ?? asString(body.question) ?? asString(body.message) ?? (body.prompt === undefined ? '' : JSON.stringify(body.prompt));
  return text.trim() === '' ? EMPTY_PROMPT : text;
}

function kindOf(given: Json | undefined, options: readonly RaspOption[], fields: readonly RaspField[]): InteractionKind {
  const kind = KINDS.find((candidate) => candidate === given);
  if (kind) return kind;
  if (fields.length > 0) return 'fill_fields';
  return options.length > 0 ? 'choose_one' : 'open_text';
}

function parseOptions(given: Json | undefined): RaspOption[] {
  if (!Array.isArray(given)) return [];
  return given.map((option) => {
    if (!isObject(option)) return { label: textOf(option), value: option };
    const label = asString(option.label) ?? textOf(option.value ?? option);
    return { label, value: option.value ?? label, description: asString(option.description) };
  });
}

function parseFields(given: Json | undefined): RaspField[] {
  if (!Array.isArray(given)) return [];
  return given.map((field, index) => {
    const body: JsonObject = asObject(field) ?? { prompt: field };
    const options = parseOptions(body.options);
    return {
      id: asString(body.id) ?? asString(body.name) ?? `q${index + 1}`,
      kind: kindOf(body.kind, options, []),
      prompt: promptOf(body),
      options,
      default: body.default,
    };
  });
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
