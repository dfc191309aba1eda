// The OpenAPI document by itself: every reference resolves, every operation has a name, and its input and output are
// described. tests/engines-real/openapi.test.ts checks it with public tools.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve, type Served } from '../../support/served.js';

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[];
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: object }>>;
}

let served: Served;
let document: {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: object };
};
let operations: readonly (readonly [string, string, Operation])[];
beforeAll(async () => {
  served = await serve();
  document = (await (await served.fetch('/openapi.json')).json()) as typeof document;
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
  );
});
afterAll(() => served.close());

function* referencesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  if ('$ref' in value && typeof value.$ref === 'string') yield value.$ref;
  for (const member of Object.values(value)) yield* referencesIn(member);
}

test('every reference leads to something, and everything that is named is used', () => {
  const used = new Set(referencesIn(document));
  expect(used.size).toBeGreaterThan(3);
  for (const reference of used) {
    expect(reference).toMatch(/^#\/components\/schemas\/\w+$/);
    expect(Object.keys(document.components.schemas)).toContain(reference.split('/').at(-1));
  }
  expect(Object.keys(document.components.schemas).filter((name) => !used.has(`#/components/schemas/${name}`))).toEqual(
    [],
  );
});

test('every operation has a unique name, a summary, a tag, its path parameters and refusals', () => {
  const names = operations.map(([, , { operationId }]) => operationId);
  expect(new Set(names).size).toBe(operations.length);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const [path, , { operationId = '', summary, tags: mine = [], parameters = [], responses }] of operations) {
    expect(operationId, path).toMatch(/^[a-z][a-zA-Z]+$/);
    expect(summary, path).toBeTruthy();
    expect(
      mine.map((tag) => tags.has(tag)),
      path,
    ).toEqual([true]);
    expect(
      parameters.filter((each) => each.in === 'path' && each.required).map(({ name }) => `{${name}}`),
      path,
    ).toEqual(path.match(/\{\w+\}/g) ?? []);
    expect(Object.keys(responses), path).toEqual(
      expect.arrayContaining([expect.stringMatching(/^20\d$/), '4XX', '5XX']),
    );
    for (const { description } of Object.values(responses)) expect(description).toBeTypeOf('string');
  }
});
