// Which model names a caller may give. A name never starts with a dash, so no engine can take it for an option.
import { phrase } from '../messages/phrase.js';
import { refusal } from './request-error.js';

export const MAX_MODEL_CHARS = 200;

export const MODEL_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_./:@+-]*$';

export const MODEL_RULE = phrase('model_rule', { limit: MAX_MODEL_CHARS });

const MODEL_NAME = new RegExp(MODEL_PATTERN);

export function checkModel(model: string): void {
  if (model.length <= MAX_MODEL_CHARS && MODEL_NAME.test(model)) return;
  throw refusal('INVALID_ARGUMENT.model', { model: JSON.stringify(model.slice(0, MAX_MODEL_CHARS)), rule: MODEL_RULE });
}
