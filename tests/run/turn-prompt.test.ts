// The prompts of turns: the request with the rules of asking, then the answers of a person.
import { expect, test } from 'vitest';
import { buildFirstPrompt, buildReplyPrompt } from '../../src/run/turn-prompt.js';

test('an interactive run explains how to ask and how to finish, an automatic one forbids questions', () => {
  const interactive = buildFirstPrompt('interactive', 'Fix it.');
  expect(interactive).toMatch(/^Fix it\.\n\n---\n/);
  expect(interactive).toContain('ask_human');
  expect(interactive).toContain('then end your turn');
  expect(interactive).toContain('{"done":true,"result":…}');
  expect(buildFirstPrompt('auto', 'Fix it.')).toBe(
    'Fix it.\n\n---\nNobody is there to answer questions. Decide yourself and do not ask.',
  );
});

test('an engine whose call lasts until the answer is not asked to end its turn', () => {
  const waiting = buildFirstPrompt('interactive', 'Fix it.', true);
  expect(waiting).toContain('result is the answer');
  expect(waiting).not.toContain('end your turn');
});

test.each([
  ['Use SQLite.', 'Use SQLite.'],
  [' two ', ' two '],
  [{ choice: 1 }, '{"choice":1}'],
  [null, 'null'],
  [0, '0'],
  ['', '(the answer was left empty)'],
  [' \n', '(the answer was left empty)'],
])('the answer %j becomes the prompt %j', (answer, prompt) => {
  expect(buildReplyPrompt(answer)).toBe(prompt);
});
