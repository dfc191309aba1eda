// The file of the question tool, and how it is read after any kind of exit.
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { appendAsk, readAsks } from '../../src/ask/ask-file.js';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-asks-'));
  file = join(dir, 'asks.jsonl');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('questions are read back in their order, with whether the tool was listed', async () => {
  expect(await readAsks(file, 'n')).toEqual({ listed: false, questions: [] });
  appendAsk(file, 'n', { type: 'listed' });
  appendAsk(file, 'n', { type: 'asked', question: { prompt: 'One? 漢字\u2028' } });
  appendAsk(file, 'n', { type: 'asked', question: { prompt: 'Two?', options: ['a'] } });
  expect(await readAsks(file, 'n')).toEqual({
    listed: true,
    questions: [{ prompt: 'One? 漢字\u2028' }, { prompt: 'Two?', options: ['a'] }],
  });
  expect(statSync(file).mode & 0o077).toBe(0);
});

test('questions of another turn are ignored, unless every nonce is requested', async () => {
  appendAsk(file, 'old', { type: 'asked', question: { prompt: 'Old?' } });
  appendAsk(file, 'new', { type: 'asked', question: { prompt: 'New?' } });
  expect((await readAsks(file, 'new')).questions).toEqual([{ prompt: 'New?' }]);
  expect((await readAsks(file, null)).questions).toHaveLength(2);
});

test('a line that was cut off, and one that is no question, are passed over', async () => {
  appendAsk(file, 'n', { type: 'asked', question: { prompt: 'Whole?' } });
  appendFileSync(
    file,
    '{"type":"asked","nonce":"n","question":"not an object"}\nnull\n{"type":"asked","nonce":"n","questi',
  );
  expect((await readAsks(file, 'n')).questions).toEqual([{ prompt: 'Whole?' }]);
});

test('a record that was cut off does not spoil the next one', async () => {
  appendAsk(file, 'n', { type: 'asked', question: { prompt: 'First?' } });
  const torn = readFileSync(file);
  truncateSync(file, torn.length - 5);
  appendAsk(file, 'n', { type: 'asked', question: { prompt: 'Next?' } });
  expect((await readAsks(file, 'n')).questions).toEqual([{ prompt: 'Next?' }]);
});
