// Compiles a schema in the form of an engine, within the bounds for external schemas, on this thread: for tests that
// check thousands of them.
import { textOf } from '../../src/messages/phrase.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { explainBounds } from '../../src/schema-check/schema-bounds.js';

type Compiled =
  | { readonly ok: true; readonly explain: (value: unknown) => string | null }
  | { readonly ok: false; readonly problem: string };

export function compileSchema(schema: object): Compiled {
  const bounds = explainBounds(schema);
  if (bounds !== null) return { ok: false, problem: textOf(bounds) };
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, validateFormats: false });
  try {
    const validate = ajv.compile(schema);
    return { ok: true, explain: (value) => (validate(value) ? null : ajv.errorsText(validate.errors)) };
  } catch (error) {
    return { ok: false, problem: String(error) };
  }
}
