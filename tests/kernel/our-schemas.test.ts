// Our own schemas are not validated at run time, to keep the start fast; this test validates them.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import cli from '../../contract/cli.schema.json' with { type: 'json' };
import config from '../../contract/config.schema.json' with { type: 'json' };
import fcmp from '../../contract/fcmp.schema.json' with { type: 'json' };
import rasp from '../../contract/rasp.schema.json' with { type: 'json' };
import { createCheck } from '../../src/kernel/validator.js';
import { TOKENS_SCHEMA } from '../../src/service/access/tokens.js';

test.each(Object.entries({ cli, fcmp, config, rasp, TOKENS_SCHEMA }))('%s is a JSON Schema', (_name, schema) => {
  const ajv = new Ajv2020();
  expect(ajv.validateSchema(schema), ajv.errorsText(ajv.errors)).toBe(true);
});

test('our own schemas are not checked again when they are used', () => {
  expect(createCheck({ properties: { a: { minLength: -1 } } }, 'value')({ a: 'x' })).toBeNull();
});
