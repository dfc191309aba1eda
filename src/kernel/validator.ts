// A JSON Schema as two questions: does a value fit the whole, or one of its definitions?
// Schemas are compiled when first needed, so that a command that checks nothing does not pay for it.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { explainSchemaErrors } from './explain-schema-errors.js';

export interface Validator {
  // What is wrong, in words; null if nothing is.
  whole(value: unknown): string | null;
  definition(name: string, value: unknown): string | null;
}

export function createValidator(schema: { readonly $defs: object }): Validator {
  let ajv: Ajv2020 | undefined;
  const compiled = new Map<string, ValidateFunction>();
  const check = (name: string, part: object, value: unknown): string | null => {
    // That ours are schemas is shown by tests: to check it here would take longer than all the rest of a start.
    ajv ??= new Ajv2020({ validateSchema: false });
    let validate = compiled.get(name);
    if (!validate) compiled.set(name, (validate = ajv.compile(part)));
    return validate(value) ? null : explainSchemaErrors(validate.errors, { name: 'event', value });
  };
  return {
    whole: (value) => check('', schema, value),
    // Without the rest of the schema, which need not be compiled for one definition.
    definition: (name, value) => check(name, { $defs: schema.$defs, $ref: `#/$defs/${name}` }, value),
  };
}

export type CompiledSchema = { readonly ok: true; readonly explain: (value: unknown) => string | null } | { readonly ok: false; readonly problem: string };

// A schema that somebody gave: one that cannot be used is an answer, not an error. Keywords it does not know are let pass.
// `name` is what the value is called in what is said about it.
export function compileSchema(schema: object, name = 'result', options: { readonly isOurs?: boolean } = {}): CompiledSchema {
  // Errors of our own schemas name the known members and state rules by their descriptions; those of others stay short.
  const isOurs = options.isOurs === true;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: !isOurs, verbose: isOurs });
  try {
    const validate = ajv.compile(schema);
    const explain = (value: unknown): string | null =>
      validate(value) ? null : explainSchemaErrors(validate.errors, { name, value });
    return { ok: true, explain };
  } catch (error) {
    const isInvalid = error instanceof Error && error.message.startsWith('schema is invalid');
    if (isInvalid) return { ok: false, problem: explainSchemaErrors(ajv.errors, { name: 'schema', value: schema }) };
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  }
}

// A check by a schema of our own, compiled when it is first needed and then kept.
export function createCheck(schema: object, name: string): (value: unknown) => string | null {
  let compiled: CompiledSchema | undefined;
  return (value) => {
    compiled ??= compileSchema(schema, name, { isOurs: true });
    return compiled.ok ? compiled.explain(value) : compiled.problem;
  };
}
