// What Parley has stored itself is JSON. Text that is none was changed by somebody else, or by the disk: an error of its own, so that no other
// text that cannot be parsed is taken for damage.

export class DamagedDataError extends Error {
  override readonly name = 'DamagedDataError';
}

export function readStoredJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DamagedDataError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
