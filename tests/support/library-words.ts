// The wording of schema libraries (Ajv, zod), which no person and no client may ever be shown.
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
