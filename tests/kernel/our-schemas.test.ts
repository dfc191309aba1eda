// Schemas of our own are not checked when they are used, for the sake of the start; so they are here.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import cli from '../../contract/cli.schema.json' with { type: 'json' };
import fcmp from '../../contract/fcmp.schema.json' with { type: 'json' };
import rasp from '../../contract/rasp.schema.json' with { type: 'json' };
import { SETTINGS_SCHEMA } from '../../src/host/settings.js';
import { createCheck } from '../../src/kernel/validator.js';
import { REQUEST_SCHEMA } from '../../src/commands/create-request.js';
import { TOKENS_SCHEMA } from '../../src/service/access/tokens.js';

test.each(Object.entries({ cli, fcmp, rasp, SETTINGS_SCHEMA, REQUEST_SCHEMA, TOKENS_SCHEMA }))(
  '%s is a JSON Schema',
  (_name, schema) => {
    const ajv = new Ajv2020();
    expect(ajv.validateSchema(schema), ajv.errorsText(ajv.errors)).toBe(true);
  },
);

test('our own schemas are not checked again when they are used', () => {
  expect(createCheck({ properties: { a: { minLength: -1 } } }, 'value')({ a: 'x' })).toBeNull();
});
