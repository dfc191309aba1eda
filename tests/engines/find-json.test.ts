import { describe, expect, test } from 'vitest';
import { findFencedJson, findJsonFragment, findTrailingObject } from '../../src/engines/find-json.js';
import { expectLinear } from '../support/growth.js';

describe('fenced blocks', () => {
  test('every fenced block that decodes is found, in order', () => {
    expect(findFencedJson('a\n```json\n{"a":1}\n```\nb\n```\n[2]\n```\nc\n```JSON\n"three"\n```')).toMatchObject([
      { value: { a: 1 } },
      { value: [2] },
      { value: 'three' },
    ]);
  });

  test('blocks that do not decode are passed over', () => {
    expect(findFencedJson('```js\nlet a = {};\n```\n```json\n{"a":1}\n```\n```json\n{"a":\n```')).toEqual([
      { value: { a: 1 }, firstLine: 3, lastLine: 5 },
    ]);
  });

  test('a block may end its lines with CR LF', () => {
    expect(findFencedJson('```json\r\n{"a":\r\n1}\r\n```\r\n')).toMatchObject([{ value: { a: 1 } }]);
  });

  test('a text without blocks, or with one that never ends, has none', () => {
    expect(findFencedJson('')).toEqual([]);
    expect(findFencedJson('{"a":1}')).toEqual([]);
    expect(findFencedJson('```json\n{"a":1}')).toEqual([]);
    expect(findFencedJson('use ``` for code')).toEqual([]);
  });

  test('a long text of fences is searched in linear time', async () => {
    await expectLinear(15_000, (times) => findFencedJson('```\n'.repeat(times)));
    await expectLinear(7_500, (times) => findFencedJson(`${'```json\n{'.repeat(times)}`));
    await expectLinear(3_000, (times) => findFencedJson(`\`\`\`\n${'x ```\n'.repeat(times)}`));
  });

  test('the search scans 8 Mi characters, counted again for each line that may end the block', () => {
    const [open, close, last] = ['```\n', '```\n', '```\n{"a":1}\n```'];
    expect(findFencedJson(`${open}${'x```\n'.repeat(1000)}${close}${last}`)).toMatchObject([{ value: { a: 1 } }]);
    expect(findFencedJson(`${open}${'x```\n'.repeat(3000)}${close}${last}`)).toEqual([]);
  });
});

describe('fragments', () => {
  test('the first object or array that decodes is found at any position', () => {
    expect(findJsonFragment('so {"a":1} and {"b":2}')?.value).toEqual({ a: 1 });
    expect(findJsonFragment('so [1,2] and {"b":2}')?.value).toEqual([1, 2]);
    expect(findJsonFragment('{not json} but {"b":2}')?.value).toEqual({ b: 2 });
  });

  test('braces and quotes inside strings do not end a fragment', () => {
    expect(findJsonFragment('x {"a":"} ] { [ \\" }","b":{"c":["]"]}} y')?.value).toEqual({
      a: '} ] { [ " }',
      b: { c: [']'] },
    });
    expect(findJsonFragment('x {"path":"C:\\\\"} y')?.value).toEqual({ path: 'C:\\' });
  });

  test('a fragment inside one that never closes is found', () => {
    expect(findJsonFragment('{"session_id": 5x, "stats": {"a":1}')?.value).toEqual({ a: 1 });
    expect(findJsonFragment('[[[ {"a":1}')?.value).toEqual({ a: 1 });
  });

  test('a text without one has none', () => {
    for (const text of ['', 'plain', '{', ']', '{]', '{"a"', '{a:1}', '"quoted { brace"', '}{'])
      expect(findJsonFragment(text), text).toBeUndefined();
  });

  test('bare values are no fragments', () => {
    expect(findJsonFragment('42 "text" true null')).toBeUndefined();
  });

  // The sizes are small enough that a search without limits fails the test within seconds.
  test('many opening brackets are given up in linear time', async () => {
    await expectLinear(5_000, (times) => expect(findJsonFragment('['.repeat(times))).toBeUndefined());
    await expectLinear(5_000, (times) => expect(findJsonFragment('{'.repeat(times))).toBeUndefined());
    await expectLinear(2_000, (times) => expect(findJsonFragment('{"a":['.repeat(times))).toBeUndefined());
    await expectLinear(5_000, (times) => expect(findJsonFragment('{"'.repeat(times))).toBeUndefined());
  });

  test('a long closed piece that does not decode is given up in linear time', async () => {
    await expectLinear(100_000, (times) =>
      expect(findJsonFragment(`{${'x'.repeat(times)}}`.repeat(2))).toBeUndefined(),
    );
  });

  test('the search tries 200 openings', () => {
    expect(findJsonFragment(`${'{x}'.repeat(199)}{"a":1}`)?.value).toEqual({ a: 1 });
    expect(findJsonFragment(`${'{x}'.repeat(200)}{"a":1}`)).toBeUndefined();
  });

  test('the search scans 8 Mi characters, counted again for each opening', () => {
    const rest = 'x'.repeat(2 * 1024 * 1024);
    expect(findJsonFragment(`${'['.repeat(3)}${rest}{"a":1}`)?.value).toEqual({ a: 1 });
    expect(findJsonFragment(`${'['.repeat(5)}${rest}{"a":1}`)).toBeUndefined();
  });
});

describe('an object at the end', () => {
  test('the whole text may be the object', () => {
    expect(findTrailingObject(' {"a":{"b":1}} \n')).toEqual({ a: { b: 1 } });
  });

  test('the outermost object that reaches the end is found', () => {
    expect(findTrailingObject('see {x} and {"a":{"b":{"c":1}}}')).toEqual({ a: { b: { c: 1 } } });
    expect(findTrailingObject('{"a":1}\n{"b":2}\n')).toEqual({ b: 2 });
  });

  test('a text that continues after its object has none', () => {
    for (const text of ['{"a":1}.', '{"a":1} ok', '[{"a":1}]', '[1]', '', '}', '{', 'a }', '"x"', '5'])
      expect(findTrailingObject(text), text).toBeUndefined();
  });

  test('long texts that end with a brace are read in linear time', async () => {
    await expectLinear(20_000, (times) => expect(findTrailingObject(`${'{'.repeat(times)}}`)).toEqual({}));
    await expectLinear(5_000, (times) => expect(findTrailingObject(`${'{"a":'.repeat(times)}}`)).toBeUndefined());
    await expectLinear(5_000, (times) => expect(findTrailingObject(`${'{"a":1}x'.repeat(times)}}`)).toBeUndefined());
  });
});
