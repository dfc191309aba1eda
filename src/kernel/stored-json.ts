// Reads JSON that Parley stored itself. Text that is not JSON was altered by another program or by the disk. A separate
// error class keeps such damage apart from all other text that cannot be parsed.
import { damageText } from './damage-texts.js';
import { verbatim, type Message } from './message.js';

export class DamagedDataError extends Error {
  override readonly name = 'DamagedDataError';
  readonly damage: Message;

  constructor(damage: Message | string, options?: ErrorOptions) {
    super(typeof damage === 'string' ? damage : damage.text, options);
    this.damage = typeof damage === 'string' ? verbatim(damage) : damage;
  }
}

// `what` names the place of the text in the error.
export function readStoredJson(text: string, what: string | (() => Message) = ''): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const place = typeof what === 'string' ? what : what();
    throw new DamagedDataError(place === '' ? reason : damageText('damage.not_json', { what: place, reason }), {
      cause,
    });
  }
}

const NO_JSON = /^malformed JSON$/i;
const NO_NUMBER = /too large to be represented|^integer overflow$/i;

// Whether an error was thrown because stored data does not have the form that Parley stores.
export function isFormError(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

// Returns a DamagedDataError if this error means damaged stored data. SQLite parses JSON itself, and its binding
// refuses numbers larger than any that Parley writes.
export function damageIn(error: unknown): DamagedDataError | null {
  if (error instanceof DamagedDataError) return error;
  return error instanceof Error && [NO_JSON, NO_NUMBER].some((pattern) => pattern.test(error.message))
    ? new DamagedDataError(damageText('damage.row', { reason: error.message }), { cause: error })
    : null;
}

// Resolves to null for damaged data and reports it, so that one damaged row does not fail the whole list.
export async function unlessDamaged<T>(
  reading: Promise<T>,
  onDamaged: (damage: DamagedDataError) => void = () => {},
): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    const damage = damageIn(error);
    if (!damage) throw error;
    onDamaged(damage);
    return null;
  }
}
