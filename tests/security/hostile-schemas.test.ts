// Schemas of callers and engines on a busy server: other callers are not affected, and refusals are explained.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve, type Served } from '../support/served.js';

let served: Served;
beforeAll(async () => {
  served = await serve();
});
afterAll(() => served.close());

const LONG = 'a'.repeat(40);

async function create(
  schema: unknown,
  prompt = '[[done 1]]',
): Promise<{ readonly status: number; readonly message: string }> {
  const response = await served.fetch('/v1/runs', {
    method: 'POST',
    body: JSON.stringify({ engine: 'codex', prompt, output_schema: schema }),
  });
  const body = (await response.json()) as { error?: { code: string; message: string } };
  return { status: response.status, message: body.error?.message ?? '' };
}

async function result(schema: object, prompt: string) {
  const { run_id: runId } = await served.client.create({ engine: 'codex', prompt, output_schema: schema as never });
  await served.bench.orchestrator.waitUntilIdle(runId);
  const { status, error } = (await served.bench.data.store.loadRun(runId)) ?? {};
  return { status, code: error?.code, message: error?.message };
}

describe('a new run', () => {
  test.each<[string, unknown, RegExp]>([
    ['$async', { $async: true }, /^output_schema cannot be used: it uses \$async/],
    ['a remote reference', { $ref: 'file:///etc/passwd' }, /leads out of the schema/],
    ['1.2 MB', { enum: ['x'.repeat(1_200_000)] }, /it is larger than 256 KiB/],
    ['too many parts', { enum: Array.from({ length: 20_000 }, (_, index) => index) }, /it has more than 10000 parts/],
    ['nesting', JSON.parse(`${'{"not":'.repeat(150)}{}${'}'.repeat(150)}`), /nested deeper than 64 levels/],
    ['a type that is none', { type: 'nonsense' }, /type cannot be "nonsense"/],
  ])('with %s in its output_schema is refused with a plain sentence', async (_what, schema, message) => {
    expect(await create(schema)).toMatchObject({ status: 400, message: expect.stringMatching(message) });
  });
});

describe('the result of a turn', () => {
  test('that does not fit is explained without the words of the schema library', async () => {
    const schema = { type: 'object', properties: { version: { type: 'string' } } };
    expect(await result(schema, '[[done {"version":3}]]')).toEqual({
      status: 'failed',
      code: 'OUTPUT_INVALID',
      message: expect.stringMatching(/^The result does not fit the output schema: version cannot be 3: /),
    });
  });

  test(
    'whose check takes too long fails the run with OUTPUT_INVALID while the server answers',
    { timeout: 60_000 },
    async () => {
      const hostile = result({ pattern: '^(a+)+$' }, `[[done "${LONG}!"]]`);
      const honest = result({ type: 'number' }, '[[done 1]]');
      expect(await honest).toMatchObject({ status: 'succeeded' });
      // On the main thread the pattern would block all responses.
      for (let request = 0; request < 20; request += 1) expect((await served.fetch('/v1/runs')).status).toBe(200);
      expect(await hostile).toMatchObject({
        status: 'failed',
        code: 'OUTPUT_INVALID',
        message: expect.stringContaining('took longer than 3 s and was stopped'),
      });
    },
  );
});

test('names and formats with control characters are not written to the log or to stderr', async () => {
  const before = served.logged.length;
  expect(await create({ format: '\u001b]0;owned\u0007\n{"level":60,"msg":"forged"}' })).toMatchObject({ status: 201 });
  const lines = served.logged.slice(before).join('');
  expect(lines).not.toContain('forged');
  expect(lines).not.toContain('owned');
});
