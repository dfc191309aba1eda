// Checks values against our own JSON Schemas (the contract, stored rows, tokens) on the calling thread. Settings,
// requests and runtime options have zod schemas. src/schema-check compiles the schemas of callers and engines in worker
// threads. A schema is compiled at its first use, so a command that checks nothing does not pay for it.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { explainSchemaErrors } from './explain-schema-errors.js';
import type { Phrase } from '../kernel/fill-template.js';
import { phrase, sentencesOf } from './phrase.js';

export interface Validator {
  // Returns the problem as sentences; null if the value is valid.
  whole(value: unknown): string | null;
  definition(name: string, value: unknown): string | null;
}

export function createValidator(schema: { readonly $defs: object }): Validator {
  let ajv: Ajv2020 | undefined;
  const compiled = new Map<string, ValidateFunction>();
  const check = (name: string, part: object, value: unknown): string | null => {
    // Tests show that our schemas are valid. Checking them here would take longer than the rest of the startup.
    ajv ??= new Ajv2020({ validateSchema: false, verbose: true, logger: false });
    let validate = compiled.get(name);
    if (!validate) compiled.set(name, (validate = ajv.compile(part)));
    return validate(value) ? null : sentencesOf(explainSchemaErrors(validate.errors, { name: phrase('event'), value }));
  };
  return {
    whole: (value) => check('', schema, value),
    // Leaves out the rest of the schema, which need not be compiled for one definition.
    definition: (name, value) => check(name, { $defs: schema.$defs, $ref: `#/$defs/${name}` }, value),
  };
}

// Creates a check from one of our own schemas. It returns null for a valid value, and otherwise the problems. `name` is
// the name of the value in them.
export function createCheck(schema: object, name: Phrase): (value: unknown) => readonly Phrase[] | null {
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
