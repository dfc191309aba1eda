// The question tool as an agent sees it: its name and its parameters.
import type { JsonObject } from '../kernel/json.js';

// Gemini would drop a tool named ask_user.
export const ASK_TOOL = 'ask_human';

const OPTION: JsonObject = {
  anyOf: [
    { type: 'string' },
    {
      type: 'object',
      properties: { label: { type: 'string' }, value: {}, description: { type: 'string' } },
      required: ['label'],
    },
  ],
};
const FIELD: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    prompt: { type: 'string' },
    kind: { type: 'string', enum: ['open_text', 'choose_one', 'confirm'] },
    options: { type: 'array', items: OPTION },
    default: {},
  },
  required: ['id', 'prompt'],
};

export const ASK_INPUT = {
  type: 'object' as const,
  properties: {
    prompt: { type: 'string', description: 'The question, with all that is needed to answer it.' },
    kind: { type: 'string', enum: ['open_text', 'choose_one', 'confirm', 'fill_fields'] },
    options: {
      type: 'array',
      items: OPTION,
      description: 'Answers to choose from; the person may also answer in own words.',
    },
    default: { description: 'What you would take if nobody answered.' },
    fields: { type: 'array', items: FIELD, description: 'Several questions at once.' },
  },
  required: ['prompt'],
};
