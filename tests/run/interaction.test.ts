// Any input from an agent becomes a question that can be stored, shown and answered.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { draft } from '../../src/rasp/draft.js';
import { RASP_VERSION } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import { buildApproval, mergeQuestions, parseQuestion, type Question } from '../../src/run/interaction.js';
import { runs } from '../support/runs.js';

const NOW = '2026-01-01T00:00:00.000Z';

// draft() refuses data that does not fit the schema; the stored text is checked again after reading it back.
function request(question: Question): JsonObject {
  const { json } = draft('interaction.requested', {
    interaction_id: 'int_1',
    kind: question.kind,
    prompt: question.prompt,
    options: [...question.options],
    fields: question.fields && [...question.fields],
    default: question.default,
    channel: question.channel,
    asked_at: NOW,
  });
  const data = JSON.parse([json].flat().join('')) as JsonObject;
  const stored = {
    protocol_version: RASP_VERSION,
    run_id: 'run_1',
    seq: 1,
    ts: NOW,
    attempt_number: 1,
    source: { engine: 'codex', parser: 'orchestrator', confidence: 1 },
    event: { category: 'interaction', type: 'interaction.requested' },
    data,
    correlation: {},
    raw_ref: null,
  };
  expect(explainRasp(stored)).toBeNull();
  return data;
}

// The question that a person would see for this input; absent members are left out.
function check(input: Json | undefined, expected: object): void {
  const {
    interaction_id: _id,
    asked_at: _askedAt,
    channel: _channel,
    ...shown
  } = request(parseQuestion(input, 'tool'));
  expect(shown).toEqual(expected);
}

const open = (prompt: string) => ({ kind: 'open_text', prompt, options: [] });
const choose = (...options: object[]) => ({ kind: 'choose_one', prompt: 'Which?', options });
const fill = (...fields: object[]) => ({ kind: 'fill_fields', prompt: 'Fill in', options: [], fields });
const kindOf = (input: Json) => request(parseQuestion(input, 'tool')).kind;
const EMPTY = open('(the agent asked without a text)');

describe('the prompt', () => {
  test('a plain question is open text', () => {
    check({ prompt: 'Which port?' }, open('Which port?'));
  });

  test('a question may be called prompt, question or message, in this order', () => {
    check({ question: 'Which port?' }, open('Which port?'));
    check({ message: 'Which port?' }, open('Which port?'));
    check({ message: 'no', question: 'no', prompt: 'Which port?' }, open('Which port?'));
    check({ message: 'no', question: 'Which port?' }, open('Which port?'));
  });

  test('a question that is no object is taken as the prompt', () => {
    check('Which port?', open('Which port?'));
    check(42, open('42'));
    check(true, open('true'));
    check(['a', 'b'], open('["a","b"]'));
  });

  test('a prompt that is no text is shown as JSON', () => {
    check({ prompt: { en: 'Which port?' } }, open('{"en":"Which port?"}'));
    check({ prompt: 7 }, open('7'));
    check({ prompt: false }, open('false'));
  });

  test('a question without a text says so', () => {
    const inputs: (Json | undefined)[] = [
      undefined,
      null,
      '',
      ' \n',
      {},
      { prompt: '' },
      { prompt: '\t' },
      { kind: 'open_text' },
    ];
    for (const input of inputs) check(input, EMPTY);
  });

  test('a prompt that is null counts as no text', () => {
    check({ prompt: null }, EMPTY);
    check({ prompt: 'Fill in', fields: [null] }, fill({ ...EMPTY, id: 'q1' }));
  });

  test('an empty prompt does not hide a question that is given beside it', () => {
    check({ prompt: '', question: 'Which port?' }, open('Which port?'));
  });

  test('the text of a prompt is not altered', () => {
    const prompt = '  Zeile 1\n\tZeile 2 — 你好 \u0000 ';
    check({ prompt }, open(prompt));
  });
});

describe('options', () => {
  test('options that are texts are label and value at once', () => {
    check({ prompt: 'Which?', options: ['a', 'b'] }, choose({ label: 'a', value: 'a' }, { label: 'b', value: 'b' }));
  });

  test('options that are objects keep label, value and description', () => {
    check(
      { prompt: 'Which?', options: [{ label: 'A', value: 'a', description: 'the first' }] },
      choose({ label: 'A', value: 'a', description: 'the first' }),
    );
    check({ prompt: 'Which?', options: [{ label: 'A' }] }, choose({ label: 'A', value: 'A' }));
    check({ prompt: 'Which?', options: [{ value: 'a' }] }, choose({ label: 'a', value: 'a' }));
    check({ prompt: 'Which?', options: [{ value: { port: 1 } }] }, choose({ label: '{"port":1}', value: { port: 1 } }));
    check(
      {
        prompt: 'Which?',
        options: [
          { label: 'no', value: false },
          { label: 'none', value: 0 },
          { label: 'empty', value: '' },
        ],
      },
      choose({ label: 'no', value: false }, { label: 'none', value: 0 }, { label: 'empty', value: '' }),
    );
  });

  test('options that are numbers, booleans or null keep their value and get a label', () => {
    check(
      { prompt: 'Which?', options: [8080, true, null] },
      choose({ label: '8080', value: 8080 }, { label: 'true', value: true }, { label: 'null', value: null }),
    );
  });

  test('an option of an unknown shape is shown as JSON rather than left out', () => {
    const { options } = parseQuestion({ prompt: 'Which?', options: [{ port: 1 }, ['x'], {}] }, 'tool');
    expect(options.map((option) => option.label)).toEqual(['{"port":1}', '["x"]', '{}']);
    check(
      { prompt: 'Which?', options: [{ label: 5, value: 'five', description: 6 }] },
      choose({ label: 'five', value: 'five' }),
    );
  });

  test('options that are no list are no options', () => {
    for (const options of ['a,b', 3, null, {}, []] satisfies Json[])
      check({ prompt: 'Which?', options }, open('Which?'));
  });
});

describe('the kind', () => {
  test('a kind that the agent names is kept', () => {
    for (const kind of ['open_text', 'choose_one', 'confirm', 'fill_fields'])
      expect(kindOf({ kind, prompt: 'x' })).toBe(kind);
    expect(kindOf({ kind: 'open_text', prompt: 'x', options: ['a'] })).toBe('open_text');
    expect(kindOf({ kind: 'confirm', prompt: 'x', options: ['yes', 'no'] })).toBe('confirm');
  });

  test('a kind that is missing or unknown is inferred: fields, then options, else open text', () => {
    const inputs: JsonObject[] = [
      {},
      ...[null, 'multiple_choice', 'CONFIRM', '', 1, {}, ['confirm'], 'constructor', '__proto__'].map((kind) => ({
        kind,
      })),
    ];
    for (const kind of inputs) {
      expect(kindOf({ ...kind, prompt: 'x' }), JSON.stringify(kind)).toBe('open_text');
      expect(kindOf({ ...kind, prompt: 'x', options: ['a'] }), JSON.stringify(kind)).toBe('choose_one');
      expect(kindOf({ ...kind, prompt: 'x', options: ['a'], fields: ['b'] }), JSON.stringify(kind)).toBe('fill_fields');
    }
  });

  test('an agent cannot ask for an approval by itself, neither at the top nor in a field', () => {
    expect(kindOf({ kind: 'approval', prompt: 'Let me' })).toBe('open_text');
    expect(kindOf({ kind: 'approval', prompt: 'Let me', options: ['yes'] })).toBe('choose_one');
    const question = parseQuestion(
      { prompt: 'Let me', fields: [{ id: 'a', kind: 'approval', prompt: 'Let me' }] },
      'tool',
    );
    expect(question.fields?.map((field) => field.kind)).toEqual(['open_text']);
  });

  test('the channel is the one the question came by', () => {
    for (const channel of ['native', 'tool', 'envelope', 'conversation'] as const)
      expect(request(parseQuestion('x', channel)).channel).toBe(channel);
  });
});

describe('fields and defaults', () => {
  test('fields keep their id, kind, prompt, options and default', () => {
    check(
      {
        prompt: 'Fill in',
        fields: [
          { id: 'port', prompt: 'Port?', default: 80 },
          { id: 'db', prompt: 'Which?', options: ['pg', 'sqlite'] },
          { id: 'sure', kind: 'confirm', prompt: 'Sure?' },
        ],
      },
      fill(
        { id: 'port', kind: 'open_text', prompt: 'Port?', options: [], default: 80 },
        {
          id: 'db',
          kind: 'choose_one',
          prompt: 'Which?',
          options: [
            { label: 'pg', value: 'pg' },
            { label: 'sqlite', value: 'sqlite' },
          ],
        },
        { id: 'sure', kind: 'confirm', prompt: 'Sure?', options: [] },
      ),
    );
  });

  test('a field without an id takes its name, else its number', () => {
    check(
      { prompt: 'Fill in', fields: [{ name: 'port', prompt: 'Port?' }, { prompt: 'Host?' }, 'Path?'] },
      fill({ ...open('Port?'), id: 'port' }, { ...open('Host?'), id: 'q2' }, { ...open('Path?'), id: 'q3' }),
    );
  });

  test('a second field with the same id gets an unused one', () => {
    const { fields } = parseQuestion({ fields: [{ id: 'a' }, { id: 'a' }, { id: 'q2' }, { id: 'a' }] }, 'tool');
    expect(fields?.map(({ id }) => id)).toEqual(['a', 'q2_', 'q2', 'q4']);
  });

  test('an id that the agent gave is never taken away by a field without one', () => {
    const { fields } = parseQuestion({ fields: [{ prompt: 'a' }, { id: 'q1', prompt: 'b' }] }, 'tool');
    expect(fields?.map(({ id }) => id)).toEqual(['q1_', 'q1']);
  });

  test('the number given to a field without an id is never the id of another field', () => {
    const ids =
      parseQuestion(
        { prompt: 'Fill in', fields: [{ id: 'q2', prompt: 'Port?' }, { prompt: 'Host?' }] },
        'tool',
      ).fields?.map((field) => field.id) ?? [];
    expect(new Set(ids).size).toBe(2);
  });

  test('fields that are no list, or an empty one, are no fields', () => {
    for (const fields of ['a', 3, null, {}, []] satisfies Json[]) check({ prompt: 'Which?', fields }, open('Which?'));
  });

  test('any JSON can be the default, also a false one', () => {
    for (const value of [false, 0, '', null, 'a', { a: [1] }, []] satisfies Json[])
      check({ prompt: 'Which?', default: value }, { ...open('Which?'), default: value });
  });
});

describe('several questions', () => {
  const port = parseQuestion({ prompt: 'Port?', default: 80 }, 'tool');
  const db = parseQuestion({ prompt: 'Which?', options: ['pg'] }, 'envelope');

  test('no question stays none and one question stays itself', () => {
    expect(mergeQuestions([])).toBeUndefined();
    expect(mergeQuestions([db])).toBe(db);
  });

  test('several questions become one with a numbered prompt and a field for each', () => {
    const merged = mergeQuestions([port, db]);
    expect(merged && request(merged)).toMatchObject({
      kind: 'fill_fields',
      prompt: '1. Port?\n2. Which?',
      options: [],
      fields: [
        { id: 'q1', kind: 'open_text', prompt: 'Port?', options: [], default: 80 },
        { id: 'q2', kind: 'choose_one', prompt: 'Which?', options: [{ label: 'pg', value: 'pg' }] },
      ],
      channel: 'tool',
    });
  });

  test('the fields of a question are not lost when it is merged with another', () => {
    const filled = parseQuestion(
      {
        prompt: 'Fill in',
        fields: [
          { id: 'user', prompt: 'User name?' },
          { id: 'mail', prompt: 'Mail address?' },
        ],
      },
      'tool',
    );
    const merged = JSON.stringify(mergeQuestions([filled, port]));
    for (const text of ['User name?', 'Mail address?', 'Port?']) expect(merged).toContain(text);
  });
});

describe('whatever JSON an agent gives', () => {
  // Random JSON rarely has the relevant members, so some inputs are made of them.
  const text = fc.oneof(fc.string(), fc.constantFrom('', ' ', 'approval', 'confirm', 'fill_fields'));
  const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
  const member = fc.oneof(text, json, fc.array(json, { maxLength: 3 })) as fc.Arbitrary<Json>;
  const item = fc.oneof(
    json,
    fc.record(
      {
        id: member,
        name: member,
        kind: member,
        label: member,
        value: member,
        description: member,
        prompt: member,
        options: member,
        default: member,
      },
      { requiredKeys: [] },
    ),
  ) as fc.Arbitrary<Json>;
  const shaped = fc.record(
    {
      prompt: member,
      question: member,
      message: member,
      kind: member,
      options: fc.oneof(json, fc.array(item, { maxLength: 3 })),
      fields: fc.oneof(json, fc.array(item, { maxLength: 3 })),
      default: member,
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Json>;
  const input = fc.oneof(json, shaped);

  test('it becomes a question that can be stored, with a prompt, and never an approval', () => {
    fc.assert(
      fc.property(input, (value) => {
        const question = parseQuestion(value, 'tool');
        const data = request(question);
        expect(question.prompt.trim()).not.toBe('');
        expect([question, ...(question.fields ?? [])].map((each) => each.kind)).not.toContain('approval');
        // The stored data equals the parsed data.
        expect(data.prompt).toBe(question.prompt);
      }),
      { seed: 5, numRuns: runs(1000) },
    );
  });

  test('several of them become one question that can be stored', () => {
    fc.assert(
      fc.property(fc.array(input, { minLength: 2, maxLength: 4 }), (values) => {
        const merged = mergeQuestions(values.map((value) => parseQuestion(value, 'envelope')));
        expect(merged && request(merged)).toMatchObject({ kind: 'fill_fields' });
        expect(merged?.fields?.length).toBeGreaterThanOrEqual(values.length);
      }),
      { seed: 6, numRuns: runs(500) },
    );
  });
});

test('an approval offers the four decisions, each as a whole reply', () => {
  expect(buildApproval('Run this command?', { command: ['npm', 'test'] })).toEqual({
    kind: 'approval',
    prompt: 'Run this command?',
    options: [
      { label: 'Approve', value: { decision: 'approve' } },
      { label: 'Approve for the whole session', value: { decision: 'approve_for_session' } },
      { label: 'Decline', value: { decision: 'decline' } },
      { label: 'Decline and stop', value: { decision: 'cancel' } },
    ],
    action: { command: ['npm', 'test'] },
    channel: 'native',
  });
});
