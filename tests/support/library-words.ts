// The wording of schema libraries (Ajv, zod), which must never reach a person or a client.
export const LIBRARY_WORDS = new RegExp(
  [
    'must (?:NOT )?(?:match|have|be)',
    'Invalid (?:input|option|string)',
    'expected .* received',
    'additional properties',
    'regex',
    'unrecognized key',
  ].join('|'),
  'i',
);
