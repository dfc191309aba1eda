import { describe, expect, test } from 'vitest';
import { readEnvelope } from '../../src/engines/envelope.js';

const NONE = { question: null, done: null };
const ASK = '{"ask_user":{"prompt":"Which database?","options":["Postgres","SQLite"]}}';
const QUESTION = {
  kind: 'choose_one',
  prompt: 'Which database?',
  options: [
    { label: 'Postgres', value: 'Postgres' },
    { label: 'SQLite', value: 'SQLite' },
  ],
  channel: 'envelope',
};

function fenced(json: string, language = 'json'): string {
  return `\`\`\`${language}\n${json}\n\`\`\``;
}

describe('a question', () => {
  test('the whole message may be the object', () => {
    expect(readEnvelope(ASK)).toEqual({ question: QUESTION, done: null });
    expect(readEnvelope(`\n  ${ASK}\n\n`)).toEqual({ question: QUESTION, done: null });
    expect(readEnvelope(JSON.stringify(JSON.parse(ASK), null, 2))).toEqual({ question: QUESTION, done: null });
  });

  test('prose may precede the object', () => {
    expect(readEnvelope(`I looked at {both} and cannot decide.\n\n${ASK}`)).toEqual({ question: QUESTION, done: null });
    expect(readEnvelope(`I cannot decide: ${ASK}`)).toEqual({ question: QUESTION, done: null });
  });

  test('the object may be in a fenced block that ends the message', () => {
    expect(readEnvelope(fenced(ASK))).toEqual({ question: QUESTION, done: null });
    expect(readEnvelope(`I cannot decide.\n\n${fenced(ASK, '')}\n`)).toEqual({ question: QUESTION, done: null });
    expect(readEnvelope(`First:\n${fenced('{"a":1}')}\nthen:\n${fenced(ASK)}`)).toEqual({
      question: QUESTION,
      done: null,
    });
  });

  test('a question may be only a text', () => {
    expect(readEnvelope('{"ask_user":"Go on?"}').question).toMatchObject({ kind: 'open_text', prompt: 'Go on?' });
  });

  test('a question without a text but with options is still a question', () => {
    expect(readEnvelope('{"ask_user":{"options":["a"]}}').question).toMatchObject({
      kind: 'choose_one',
      prompt: '(the agent asked without a text)',
    });
  });

  test.each(['false', '0', '""', '" "', '[]', '{}', '{"prompt":""}', 'null'])(
    'ask_user: %s asks nothing, and the done marker beside it counts',
    (text) => {
      expect(readEnvelope(`{"ask_user":${text},"done":true,"result":7}`)).toEqual({
        question: null,
        done: { result: 7 },
      });
    },
  );

  test('several questions in a list become one with a field for each', () => {
    expect(
      readEnvelope('{"ask_user":[{"prompt":"A?"},"B?",[]]}').question?.fields?.map(({ prompt }) => prompt),
    ).toEqual(['A?', 'B?']);
  });

  test('an object with both members asks, because an agent that asks is not done', () => {
    expect(readEnvelope('{"ask_user":{"prompt":"Go on?"},"done":true,"result":1}')).toMatchObject({
      question: { prompt: 'Go on?' },
      done: null,
    });
  });

  test('a question that is null was not asked', () => {
    expect(readEnvelope('{"ask_user":null,"done":true,"result":{"files":3}}')).toEqual({
      question: null,
      done: { result: { files: 3 } },
    });
    expect(readEnvelope('{"ask_user":null,"done":false}')).toEqual(NONE);
  });
});

describe('done', () => {
  test('a result may be any JSON', () => {
    for (const result of ['text', 5, false, [1, 2], { a: { b: [] } }]) {
      expect(readEnvelope(JSON.stringify({ done: true, result }))).toEqual({ question: null, done: { result } });
    }
  });

  test('done without a result has the result null', () => {
    expect(readEnvelope('All tests pass.\n{"done":true}')).toEqual({ question: null, done: { result: null } });
    expect(readEnvelope('{"done":true,"result":null}')).toEqual({ question: null, done: { result: null } });
  });

  test('only the value true means done', () => {
    for (const value of ['false', '"true"', '1', 'null', '{}'])
      expect(readEnvelope(`{"done":${value},"result":1}`), value).toEqual(NONE);
  });
});

describe('ignored objects', () => {
  test('an object that is quoted on the way is no envelope', () => {
    expect(readEnvelope(`To ask, I would print ${ASK} but I need not.`)).toEqual(NONE);
    expect(readEnvelope('The contract says {"done":true,"result":…} at the end. I am still at work.')).toEqual(NONE);
    expect(readEnvelope(`${fenced('{"done":true}')}\nThat is how it would look.`)).toEqual(NONE);
    expect(readEnvelope(`${fenced(ASK)}\nThat was an example.\n${fenced('{"a":1}')}`)).toEqual(NONE);
  });

  test('an envelope inside another object is no envelope', () => {
    expect(readEnvelope('{"example":{"done":true}}')).toEqual(NONE);
    expect(readEnvelope('[{"done":true}]')).toEqual(NONE);
  });

  test('damaged objects, other objects, prose and silence are no envelopes', () => {
    const garbage = [
      '',
      ' ',
      '"done"',
      '{"done":true',
      '{"done":true}}',
      '{"done" true}',
      'the word "done" and a brace }',
      '{"ask_user":',
      '```json\n{"done":\n```',
      '```',
      '"ask_user"}',
    ];
    for (const text of garbage) expect(readEnvelope(text), text).toEqual(NONE);
    expect(readEnvelope(null)).toEqual(NONE);
    expect(readEnvelope('{"answer":"42"}')).toEqual(NONE);
  });
});

describe('envelopes behind long or tricky messages', () => {
  test('an envelope behind a message full of braces is found', () => {
    const listing = 'function f() { return {}; }\n'.repeat(300);
    expect(readEnvelope(`${listing}\n${ASK}`)).toEqual({ question: QUESTION, done: null });
  });

  test('an envelope in a fence is found behind blocks of any language', () => {
    for (const language of ['c++', 'python3', 'objective-c', 'json5', 'js title="a.js"']) {
      expect(readEnvelope(`${fenced('x = 1', language)}\nso:\n${fenced(ASK)}`), language).toEqual({
        question: QUESTION,
        done: null,
      });
    }
  });

  test('an envelope in a fence may quote a fence in one of its strings', () => {
    const prompt = 'Shall I run this?\n```sh\nrm -rf build\n```';
    expect(readEnvelope(fenced(JSON.stringify({ ask_user: { prompt } }))).question).toMatchObject({ prompt });
  });

  test('a large result is read when it is the whole message', () => {
    const result = 'x'.repeat(1_000_000);
    expect(readEnvelope(JSON.stringify({ done: true, result })).done).toEqual({ result });
  });

  test('JSON that is nested too deeply to be written again never throws', () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    for (const text of [
      `{"ask_user":{"prompt":${deep}}}`,
      `{"ask_user":{"prompt":"a","options":[${deep}]}}`,
      `{"ask_user":${deep}}`,
    ]) {
      expect(() => readEnvelope(text)).not.toThrow();
    }
  });
});
