// One question told by two witnesses is one question; told by one of them it is a question too, and that is said.
import { expect, test } from 'vitest';
import { hearQuestions } from '../../src/ask/witnesses.js';
import { parseQuestion } from '../../src/run/interaction.js';

const ONE = { prompt: 'Which?', options: ['a', 'b'] };
const TWO = { prompt: 'Which port?' };
const printed = (...given: object[]) => given.map((question) => parseQuestion(question as { prompt: string }, 'tool'));

test('what both saw is one question each, in the order of the file', () => {
  // Gemini adds an argument of its own.
  const heard = hearQuestions([ONE, TWO], printed(TWO, { ...ONE, wait_for_previous: true }));
  expect(heard).toMatchObject({ onlyRecorded: 0, onlyPrinted: 0 });
  expect(heard.questions.map(({ prompt }) => prompt)).toEqual(['Which?', 'Which port?']);
});

test('the same question asked twice stays two', () => {
  expect(hearQuestions([ONE, ONE], printed(ONE, ONE)).questions).toHaveLength(2);
  expect(hearQuestions([ONE, ONE], printed(ONE))).toMatchObject({ questions: { length: 2 }, onlyRecorded: 1, onlyPrinted: 0 });
});

test('what only one of them saw counts, and is told', () => {
  expect(hearQuestions([ONE], [])).toMatchObject({ questions: [{ prompt: 'Which?' }], onlyRecorded: 1, onlyPrinted: 0 });
  expect(hearQuestions([], printed(TWO))).toMatchObject({ questions: [{ prompt: 'Which port?' }], onlyRecorded: 0, onlyPrinted: 1 });
});

test('a question of another channel has no second witness and is left alone', () => {
  const envelope = parseQuestion(TWO, 'envelope');
  expect(hearQuestions([ONE], [...printed(ONE), envelope])).toEqual({ questions: [parseQuestion(ONE, 'tool'), envelope], onlyRecorded: 0, onlyPrinted: 0 });
});
