// For any output of the server: no throw, every byte covered exactly, the same for any chunking and for any cut into
// turns.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildForm } from '../../src/engines/codex-app-server/elicitation-form.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import type { Json } from '../../src/kernel/json.js';
import { compileSchema } from '../support/compile-schema.js';
import { APP_SERVER, loadRecording, RECORDINGS } from '../support/codex-app-server.js';
import { mutation } from '../support/mutations.js';
import { parse } from '../support/parse.js';
import { runs } from '../support/runs.js';

const RUNS = Number(process.env.PARLEY_PROPERTY_RUNS ?? runs(150));
const SEED = Number(process.env['PARLEY_SEED'] ?? 20261115);

const METHODS = [
  'turn/completed',
  'turn/started',
  'item/started',
  'item/completed',
  'item/agentMessage/delta',
  'thread/started',
  'serverRequest/resolved',
  'error',
  'thread/tokenUsage/updated',
  'turn/plan/updated',
  'item/commandExecution/requestApproval',
  'item/fileChange/requestApproval',
  'item/permissions/requestApproval',
  'mcpServer/elicitation/request',
  'item/tool/requestUserInput',
  'item/tool/call',
  '__proto__',
];
const WORDS = [
  ...METHODS,
  'agentMessage',
  'commandExecution',
  'fileChange',
  'mcpToolCall',
  'plan',
  'reasoning',
  'completed',
  'failed',
  'interrupted',
  'form',
  'url',
  'ask_human',
  't1',
  't2',
  'object',
];
const KEYS = [
  'method',
  'params',
  'id',
  'result',
  'error',
  'thread',
  'threadId',
  'item',
  'itemId',
  'type',
  'status',
  'turn',
  'changes',
  'path',
  'kind',
  'diff',
  'questions',
  'question',
  'options',
  'permissions',
  'command',
  'mode',
  'serverName',
  '_meta',
  'codex_approval_kind',
  'requestedSchema',
  'properties',
  'items',
  'enum',
  'tool',
  'arguments',
  'text',
  'summary',
  'content',
  'delta',
  'requestId',
  'tokenUsage',
  'total',
  'message',
  'codexErrorInfo',
  '__proto__',
];

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(...WORDS, null, true, 0, 1, -1, 1.5, ''),
    tie('list'),
    tie('object'),
  ),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 6 }),
}));

const message = fc.record(
  {
    method: fc.oneof(fc.constantFrom(...METHODS), value),
    id: value,
    params: fc.dictionary(fc.constantFrom(...KEYS), value, { maxKeys: 8 }),
    result: value,
    error: value,
  },
  { requiredKeys: [] },
);

const stdout = fc.oneof(
  {
    arbitrary: fc
      .tuple(
        fc.constantFrom(...RECORDINGS.map(loadRecording).filter(({ length }) => length < 30_000)),
        fc.array(mutation, { maxLength: 4 }),
      )
      .map(([bytes, changes]) => changes.reduce((now, change) => change(now), bytes)),
    weight: 3,
  },
  {
    arbitrary: fc
      .array(message, { maxLength: 12 })
      .map((lines) => Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))),
    weight: 5,
  },
  { arbitrary: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)), weight: 1 },
);

test('damaged streams never throw, are covered exactly, and read the same in any chunks', () => {
  fc.assert(
    fc.property(stdout, fc.integer({ min: 1, max: 90 }), (bytes, chunkBytes) => {
      // parse() checks the cover and every event.
      const whole = parse(APP_SERVER, { stdout: bytes });
      expect(parse(APP_SERVER, { stdout: bytes, chunkBytes })).toEqual(whole);
      for (const request of whole.openRequests) expect(() => JSON.stringify(request)).not.toThrow();
    }),
    { numRuns: RUNS, seed: SEED },
  );
});

test('turns cut from a stream at any line give the same events, except for session naming', () => {
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 12 }), fc.nat(), (messages, place) => {
      const lines = messages.map((line) => `${JSON.stringify(line)}\n`);
      const whole = parse(APP_SERVER, { stdout: lines.join('') });
      const memory = newMemory();
      const head = Buffer.from(lines.slice(0, place % lines.length).join(''));
      const first = parse(APP_SERVER, { stdout: head }, { memory });
      const second = parse(
        APP_SERVER,
        { stdout: lines.slice(place % lines.length).join('') },
        { memory, at: { stdout: head.length, stderr: 0 } },
      );
      const said = (drafts: typeof whole.drafts) =>
        drafts
          .filter(
            ({ type, data }) =>
              type !== 'lifecycle.session.bound' && !JSON.stringify(data).includes('SESSION_ID_INVALID'),
          )
          .map(({ type, data, range, itemId }) => ({ type, data, range, itemId }));
      expect(said([...first.drafts, ...second.drafts])).toEqual(said(whole.drafts));
    }),
    { numRuns: RUNS, seed: SEED },
  );
});

// Close to valid forms, so that many are valid.
const limit = fc.oneof(fc.nat({ max: 9 }), fc.double(), fc.constantFrom<unknown>(-1, 1.5, null, '1', Infinity));
const choices = fc.array(
  fc.oneof(
    fc.constantFrom<unknown>('a', 'b', 1, null),
    fc.record(
      {
        const: fc.constantFrom<unknown>('a', 'b', 1),
        title: fc.constantFrom<unknown>('A', 5),
        pattern: fc.constant('(a+)+$'),
      },
      { requiredKeys: ['const'] },
    ),
  ),
  { maxLength: 3 },
);
const words = {
  type: fc.constantFrom<unknown>(
    'string',
    'number',
    'integer',
    'boolean',
    'array',
    'object',
    'constructor',
    '__proto__',
    ['string'],
  ),
  enum: choices,
  oneOf: choices,
  anyOf: choices,
};
const property = fc
  .record(
    {
      ...words,
      items: fc.record({ ...words, $ref: fc.constant('#') }, { requiredKeys: [] }),
      title: fc.constantFrom<unknown>('T', 5),
      default: value,
      minLength: limit,
      maxLength: limit,
      minimum: limit,
      maximum: limit,
      minItems: limit,
      pattern: fc.constant('(a+)+$'),
      $ref: fc.constant('#'),
      $async: fc.constant(true),
    },
    { requiredKeys: [] },
  )
  .map((all) => Object.fromEntries(Object.entries(all).slice(0, 4)));
const name = fc.constantFrom('a', 'b', 'decision', '__proto__', 'constructor');
const form = fc.record(
  {
    type: fc.constant('object'),
    properties: fc.dictionary(name, fc.oneof(property, fc.constant({ type: 'string' })), { maxKeys: 3 }),
    required: fc.array(name, { maxLength: 2 }),
  },
  { requiredKeys: ['type', 'properties'] },
);

test('any form is not asked, or can be refused by words that are not its own', () => {
  let asked = 0;
  fc.assert(
    fc.property(form, (schema) => {
      const question = buildForm(schema as Json, 'p');
      if (!question) return;
      asked += 1;
      // As it was stored.
      const stored = JSON.parse(JSON.stringify(question.response_schema)) as object;
      const compiled = compileSchema(stored);
      expect(compiled).toMatchObject({ ok: true });
      if (compiled.ok) for (const decision of ['decline', 'cancel']) expect(compiled.explain({ decision })).toBeNull();
      expect(JSON.stringify(stored)).not.toMatch(/\$ref|\$async|\(a\+\)|"not"/);
    }),
    { numRuns: RUNS * 2, seed: SEED },
  );
  expect(asked).toBeGreaterThan(RUNS / 4);
});
