// A message that only carries a result or a question to Parley is not shown to a person as JSON.
import { expect, test } from 'vitest';
import { event, plain, show } from './fixtures.js';

const DONE = '{"done":true,"result":{"n":1}}';
const ASK = '{"ask_user":{"prompt":"Which?","options":["A","B"]}}';
const final = (text: string) => event('assistant.message.final', { message_id: 'm', text, truncated: false });
const completed = event('conversation.completed', { result: { n: 1 } });
const failed = event('conversation.failed', { error: { code: 'OUTPUT_INVALID', message: 'It does not fit.' } });
const required = event('user.input.required', {
  interaction_id: 'int_1',
  kind: 'choose_one',
  prompt: 'Which?',
  options: [{ label: 'A', value: 'A' }],
  channel: 'envelope',
});

test.each([true, false])('the result and the question replace it (live: %s)', (live) => {
  expect(show([final('Hello.'), final(DONE), completed], plain(80), live)).toBe('Hello.\n\n✓ done\n  {"n":1}\n');
  expect(show([final(`\`\`\`json\n${DONE}\n\`\`\``), completed], plain(80), live)).toBe('✓ done\n  {"n":1}\n');
  expect(show([final(ASK), required], plain(80), live)).toBe('? Which?\n  1) A\n');
});

test('it is shown as it is when neither comes, and when its pieces were shown already', () => {
  expect(show([final(DONE), failed], plain(80))).toBe(`${DONE}\n\n✗ failed: OUTPUT_INVALID\n  It does not fit.\n`);
  expect(show([final(DONE)], plain(80))).toBe(`${DONE}\n`);
  expect(
    show([event('assistant.message.delta', { message_id: 'm', text: '{"done":' }), final(DONE), completed], plain(80)),
  ).toBe(`${DONE}\n\n✓ done\n  {"n":1}\n`);
});

test('a message with other words in it, or another object, is a message', () => {
  for (const text of [`I am done: ${DONE}`, '{"done":false}', '{"answer":42}', '[true]', 'done'])
    expect(show([final(text), completed], plain(80))).toContain(text);
});
