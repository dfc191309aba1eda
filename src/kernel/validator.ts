// Checks values against our own JSON Schemas (the contract, settings, requests), on the calling thread.
// Schemas of callers and engines are never compiled here: src/schema-check does that in threads of its own.
// A schema is compiled at its first use, so that a command that checks nothing does not pay for it.
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
    // Tests show that our schemas are valid: to check it here would take longer than the rest of a start.
    ajv ??= new Ajv2020({ validateSchema: false, verbose: true, logger: false });
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

// A check by one of our own schemas. `name` is what the value is called in the explanation.
export function createCheck(schema: object, name: string): (value: unknown) => string | null {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= new Ajv2020({
      strict: false,
      allErrors: true,
      validateSchema: false,
      verbose: true,
      logger: false,
    }).compile(schema);
    return validate(value) ? null : explainSchemaErrors(validate.errors, { name, value });
  };
}
