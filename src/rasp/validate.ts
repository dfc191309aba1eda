// Checks events against contract/rasp.schema.json.
// State and interaction events are checked each time one is made: they are few, and everything hangs on them.
import { raspSchema } from '../contract/schemas.js';
import { createValidator } from '../kernel/validator.js';
import { invariant } from '../kernel/invariant.js';
import type { RaspType } from './event.js';

const validator = createValidator(raspSchema);

export function isChecked(type: string): boolean {
  return type === 'lifecycle.state.changed' || type.startsWith('interaction.');
}

export function checkRaspData(type: RaspType, data: unknown): void {
  if (!isChecked(type)) return;
  const problem = validator.definition(type, data);
  invariant(problem === null, `RASP ${type}: ${problem}`);
}

// What is wrong with an envelope, or null.
export function explainRasp(event: unknown): string | null {
  return validator.whole(event);
}
