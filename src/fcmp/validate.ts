// Checks events against contract/fcmp.schema.json; state and interaction events each time one is created.
import { fcmpSchema } from '../contract/schemas.js';
import { invariant } from '../kernel/invariant.js';
import { createValidator } from '../messages/validator.js';
import type { FcmpType } from './event.js';

const validator = createValidator(fcmpSchema);

export function checkFcmpData(type: FcmpType, data: unknown): void {
  if (type !== 'conversation.state.changed' && type !== 'user.input.required' && !type.startsWith('interaction.'))
    return;
  const problem = validator.definition(type, data);
  invariant(problem === null, `FCMP ${type}: ${problem}`);
}

// Returns the problem with an envelope, or null.
export function explainFcmp(event: unknown): string | null {
  return validator.whole(event);
}
