// A question reported by the tool and by the output is one question; reported by one of them it is kept with a warning.
import { expect, test } from 'vitest';
import { readReceipt, writeReceipt } from '../../src/ask/receipt.js';
import { hearQuestions } from '../../src/ask/witnesses.js';
import { parseQuestion } from '../../src/run/interaction.js';

const ONE = { prompt: 'Which?', options: ['a', 'b'] };
const TWO = { prompt: 'Which port?' };
const printed = (...inputs: object[]) =>
  inputs.map((question) => parseQuestion(question as { prompt: string }, 'tool'));

test('what both saw is one question each, in the order of the file', () => {
  // Gemini adds its own argument.
  const heard = hearQuestions([ONE, TWO], printed(TWO, { ...ONE, wait_for_previous: true }));
  expect(heard).toMatchObject({ onlyRecorded: 0, onlyPrinted: 0 });
  expect(heard.questions.map(({ prompt }) => prompt)).toEqual(['Which?', 'Which port?']);
});

test('the same question asked twice stays two', () => {
  expect(hearQuestions([ONE, ONE], printed(ONE, ONE)).questions).toHaveLength(2);
  expect(hearQuestions([ONE, ONE], printed(ONE))).toMatchObject({
    questions: { length: 2 },
    onlyRecorded: 1,
    onlyPrinted: 0,
  });
});

test('a question that only one witness saw is kept and reported', () => {
  expect(hearQuestions([ONE], [])).toMatchObject({
    questions: [{ prompt: 'Which?' }],
    onlyRecorded: 1,
    onlyPrinted: 0,
  });
  expect(hearQuestions([], printed(TWO))).toMatchObject({
    questions: [{ prompt: 'Which port?' }],
    onlyRecorded: 0,
    onlyPrinted: 1,
  });
});

test('a question of another channel has no second witness and is left alone', () => {
  const envelope = parseQuestion(TWO, 'envelope');
  expect(hearQuestions([ONE], [...printed(ONE), envelope])).toEqual({
    questions: [parseQuestion(ONE, 'tool'), envelope],
    onlyRecorded: 0,
    onlyPrinted: 0,
    unsigned: 0,
  });
});

const hear = (...receipts: (string | null)[]) =>
  hearQuestions([ONE, TWO], printed(ONE, TWO), { nonce: 'now', printed: receipts });

test('a printed call without the nonce of this turn is reported but adds no question', () => {
  expect(hear('now', 'now')).toMatchObject({ questions: { length: 2 }, unsigned: 0 });
  expect(hear('now', 'before')).toMatchObject({
    questions: { length: 2 },
    onlyRecorded: 0,
    onlyPrinted: 0,
    unsigned: 1,
  });
  expect(hear(null, 'before')).toMatchObject({ questions: { length: 2 }, unsigned: 2 });
  expect(hear()).toMatchObject({ questions: { length: 2 }, unsigned: 2 });
});

test('a printed call missing from the file becomes a question and is reported once, whatever its answer', () => {
  expect(hearQuestions([TWO], printed(ONE, TWO), { nonce: 'now', printed: [null, 'now'] })).toMatchObject({
    questions: { length: 2 },
    onlyRecorded: 0,
    onlyPrinted: 1,
    unsigned: 0,
  });
});

test('a receipt is found in whatever shape an engine prints it', () => {
  const text = writeReceipt('int_01K');
  for (const shape of [text, `<output>${text}</output>`, { content: [{ type: 'text', text }] }, [text]])
    expect(readReceipt(shape)).toBe('int_01K');
  for (const other of [undefined, null, '', 'Your question is recorded ().', { content: [] }])
    expect(readReceipt(other)).toBeNull();
});
