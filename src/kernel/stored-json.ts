// What Parley has stored itself is JSON. Text that is none was changed by somebody else, or by the disk: an error of
// its own, so that no other text that cannot be parsed is taken for damage.

export class DamagedDataError extends Error {
  override readonly name = 'DamagedDataError';
}

// `what` says where it stands.
export function readStoredJson(text: string, what = ''): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DamagedDataError(
      `${what === '' ? '' : `${what} is no JSON: `}${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

const NO_JSON = /^malformed JSON$/i;
const NO_NUMBER = /too large to be represented|^integer overflow$/i;

// That error, if this one says that stored data is damaged: SQLite looks into JSON itself, and its binding refuses
// numbers that are larger than any that Parley writes.
export function damageIn(error: unknown): DamagedDataError | null {
  if (error instanceof DamagedDataError) return error;
  return error instanceof Error && [NO_JSON, NO_NUMBER].some((pattern) => pattern.test(error.message))
    ? new DamagedDataError(`a row of the database: ${error.message}`, { cause: error })
    : null;
}

// What is read, or null where it is damaged, which is told: so that it takes nothing else with it.
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
