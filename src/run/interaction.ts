// A question to a person, completed from any input of the agent: never rejected for its shape.
import { asObject, asString, clipDepth, isObject, type Json, type JsonObject } from '../kernel/json.js';
import type { RaspField, RaspInteractionKind, RaspInteractionRequested, RaspOption } from '../contract/rasp-data.js';

type InteractionKind = RaspInteractionKind;
export type Channel = NonNullable<RaspInteractionRequested['channel']>;

export interface Question {
  readonly kind: InteractionKind;
  readonly prompt: string;
  readonly options: readonly RaspOption[];
  readonly default?: Json | undefined;
  readonly fields?: readonly RaspField[] | undefined;
  // What an approval is about, exactly.
  readonly action?: JsonObject | undefined;
  // What the decision is bound to.
  readonly digest?: string | undefined;
  // What an answer must fit, where the engine says so.
  readonly response_schema?: JsonObject | undefined;
  readonly channel: Channel;
}

// Agents may not ask for an approval by themselves: that kind comes from an engine's own request only.
const KINDS: readonly InteractionKind[] = ['open_text', 'choose_one', 'confirm', 'fill_fields'];
const DECISIONS = [
  ['approve', 'Approve'],
  ['approve_for_session', 'Approve for the whole session'],
  ['decline', 'Decline'],
  ['cancel', 'Decline and stop'],
] as const;
const EMPTY_PROMPT = '(the agent asked without a text)';

// Reads the arguments of ask_human or the body of an ask_user envelope.
export function parseQuestion(input: Json | undefined, channel: Channel): Question {
  const clipped = clipDepth(input ?? '');
  const body: JsonObject = asObject(clipped) ?? { prompt: clipped };
  const prompt = promptOf(body);
  const options = parseOptions(body.options);
  const fields = parseFields(body.fields);
  return {
    kind: kindOf(body.kind, options, fields),
    prompt,
    options,
    default: body.default,
    fields: fields.length > 0 ? fields : undefined,
    channel,
  };
}

// An engine's own request to be allowed something. Each option is a whole reply.
export function buildApproval(prompt: string, action?: JsonObject): Question {
  return {
    kind: 'approval',
    prompt,
    options: DECISIONS.map(([decision, label]) => ({ label, value: { decision } })),
    action,
    channel: 'native',
  };
}

// Several questions of one turn become one interaction with a field for each; the fields of a question stay fields.
export function mergeQuestions(questions: readonly Question[]): Question | undefined {
  const [first] = questions;
  if (!first || questions.length === 1) return first;
  const fields = questions.flatMap((question, index): RaspField[] => {
    const id = `q${index + 1}`;
    if (question.fields) return question.fields.map((field) => ({ ...field, id: `${id}.${field.id}` }));
    return [
      { id, kind: question.kind, prompt: question.prompt, options: [...question.options], default: question.default },
    ];
  });
  const prompt = questions.map((question, index) => `${index + 1}. ${question.prompt}`).join('\n');
  return { kind: 'fill_fields', prompt, options: [], fields, channel: first.channel };
}

function promptOf(body: JsonObject): string {
  const texts = [body.prompt, body.question, body.message]
    .filter((text) => text !== undefined && text !== null)
    .map(textOf);
  return texts.find((text) => text.trim() !== '') ?? EMPTY_PROMPT;
}

function kindOf(
  input: Json | undefined,
  options: readonly RaspOption[],
  fields: readonly RaspField[],
): InteractionKind {
  const kind = KINDS.find((candidate) => candidate === input);
  if (kind) return kind;
  if (fields.length > 0) return 'fill_fields';
  return options.length > 0 ? 'choose_one' : 'open_text';
}

function parseOptions(input: Json | undefined): RaspOption[] {
  if (!Array.isArray(input)) return [];
  return input.map((option) => {
    if (!isObject(option)) return { label: textOf(option), value: option };
    const label = asString(option.label) ?? textOf(option.value ?? option);
    return {
      label,
      value: option.value === undefined ? label : option.value,
      description: asString(option.description),
    };
  });
}

function parseFields(input: Json | undefined): RaspField[] {
  if (!Array.isArray(input)) return [];
  const bodies = input.map((field): JsonObject => asObject(field) ?? { prompt: field });
  const ids = uniqueIds(bodies.map((body) => asString(body.id) ?? asString(body.name)));
  return bodies.map((body, index) => {
    const options = parseOptions(body.options);
    return {
      id: ids[index] ?? '',
      kind: kindOf(body.kind, options, []),
      prompt: promptOf(body),
      options,
      default: body.default,
    };
  });
}

// Answers are looked up by id, so a second field with the same id, or one without an id, gets an unused one. It
// contains the position of the field, so it differs from every other such id.
function uniqueIds(ids: readonly (string | undefined)[]): string[] {
  const taken = new Set(ids.filter((id) => id !== undefined));
  const used = new Set<string>();
  return ids.map((id, index) => {
    if (id !== undefined && !used.has(id)) {
      used.add(id);
      return id;
    }
    let free = `q${index + 1}`;
    while (taken.has(free)) free += '_';
    return free;
  });
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
