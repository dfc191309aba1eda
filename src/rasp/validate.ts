// Checks events against contract/rasp.schema.json. State and interaction events are checked each time one is created:
// they are few, and the state of every run depends on them.
import { raspSchema } from '../contract/schemas.js';
import { createValidator } from '../messages/validator.js';
import { invariant } from '../kernel/invariant.js';
import type { RaspType } from './event.js';

const validator = createValidator(raspSchema);

function isChecked(type: string): boolean {
  return type === 'lifecycle.state.changed' || type.startsWith('interaction.');
}

export function checkRaspData(type: RaspType, data: unknown): void {
  if (!isChecked(type)) return;
  const problem = validator.definition(type, data);
  invariant(problem === null, `RASP ${type}: ${problem}`);
}

// Returns the problem with an envelope, or null.
export function explainRasp(event: unknown): string | null {
  return validator.whole(event);
}
