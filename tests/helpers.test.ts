// Rules for the modules that test files import.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const tests = new URL('.', import.meta.url);
// The projects in which each test file has a process of its own.
const ISOLATED = ['browser/', 'engines-real/'];

const helpers = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /(?<!\.test)\.ts$/.test(name) && !ISOLATED.some((folder) => name.startsWith(folder)),
);

test('a helper registers its cleanup in tests/support/hooks.ts instead of a hook at its top level', () => {
  const hook = /^(?:before|after)(?:Each|All)\(/m;
  const offenders = helpers.filter((name) => hook.test(readFileSync(new URL(name, tests), 'utf8')));
  expect(offenders).toEqual(['support/run-hooks.ts']);
});
