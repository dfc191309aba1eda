// Which errors a command explains in a sentence, and which it reports as a defect.
import { expect, test } from 'vitest';
import { refusalOf } from '../../src/cli/refusal-of.js';
import { readStoredJson } from '../../src/kernel/stored-json.js';
import { RequestError } from '../../src/run/request-error.js';

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

test('stored text that is not JSON is damage', () => {
  expect(readStoredJson('{"a":[1]}')).toEqual({ a: [1] });
  expect(refusalOf(thrownBy(() => readStoredJson('{"a":')))).toMatchObject({
    code: 'DATA_DIR_UNUSABLE',
    message: expect.stringContaining('parley verify --all checks every run'),
  });
});

test.each([
  ['text from elsewhere that is no JSON', () => JSON.parse('{"a":') as unknown],
  ['a number too long for its type', () => BigInt('1.5')],
  ['a mistake of ours', () => (undefined as unknown as { a: number }).a],
])('%s is not', (_what, work) => {
  expect(refusalOf(thrownBy(work))).toBeNull();
});

const said = (message: string) => Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' });

test('database errors about files are reported; errors about a wrong query are not', () => {
  expect(refusalOf(said('database disk image is malformed'))).toMatchObject({ code: 'DATA_DIR_UNUSABLE' });
  expect(refusalOf(said('disk I/O error'))).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(refusalOf(said('near "SELEC": syntax error'))).toBeNull();
  const own = new RequestError('RUN_NOT_FOUND', 'no such run');
  expect(refusalOf(own)).toBe(own);
});
