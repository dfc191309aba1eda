// The position of a scripted model: a pure function of the conversation.
import { expect, test } from 'vitest';
import { buildFirstPrompt } from '../../src/run/turn-prompt.js';
import { parseScript, planMove, type Entry } from './script.js';

const SAID: Entry = { type: 'said' };
const CALLED: Entry = { type: 'called' };
const ANSWERED: Entry = { type: 'answered' };
const LOST: Entry = { type: 'lost' };
const user = (text: string): Entry => ({ type: 'user', text });

// A move as short text: its messages, then the step that ends it.
function next(...conversation: Entry[]): string {
  const { says, end, beside } = planMove(conversation);
  const calls = [...(end ? [end] : []), ...beside].map(
    (step) => `→${step.type}${'command' in step ? `:${step.command}` : ''}`,
  );
  return [...says.map((step) => (step.type === 'answer' ? step.text.split('\n').join('/') : step.type)), ...calls].join(
    ' ',
  );
}

test('directives of the service keep their order among those of the stand-ins', () => {
  const words =
    '[[answer a]] [[http 429]] [[http 503 20]] [[slow 5]] [[huge 9]] [[cut]] [[empty]] [[html]] [[badsse]] ' +
    '[[hang]] [[http 99]] [[slow]] [[patch /a/b.txt]] [[patch b]] [[call look]] [[call]] [[beside]] [[done ' +
    '{"a":[[1]]}]]';
  expect(parseScript(words)).toEqual([
    { type: 'answer', text: 'a' },
    { type: 'http', status: 429, retryMs: undefined },
    { type: 'http', status: 503, retryMs: 20 },
    { type: 'slow', ms: 5 },
    { type: 'huge', bytes: 9 },
    { type: 'cut' },
    { type: 'empty' },
    { type: 'html' },
    { type: 'badsse' },
    { type: 'hang' },
    { type: 'patch', path: '/a/b.txt' },
    { type: 'call', name: 'look' },
    { type: 'beside' },
    { type: 'done', result: { a: [[1]] } },
  ]);
});

test('a response ends with a call, and the next one continues after it', () => {
  const prompt = user('[[answer a]] [[tool x]] [[file f]] [[answer b]] [[done]]');
  expect(next(prompt)).toBe('a →tool:x');
  expect(next(prompt, SAID, CALLED)).toBe('→file');
  expect(next(prompt, SAID, CALLED, CALLED)).toBe('b done');
});

test('a question ends the turn; directives after it run after the answer, behind those in the answer', () => {
  const asked = [user('[[ask q]] [[tool x]] [[ask r]] [[done]]'), CALLED];
  expect(next(...asked)).toBe('The question is asked; I end my turn.');
  expect(next(...asked, SAID, user('blue'))).toBe('→tool:x');
  expect(next(...asked, SAID, user('blue [[answer c]]'))).toBe('c →tool:x');
  expect(next(...asked, SAID, user('blue'), CALLED)).toBe('→ask');
  expect(next(...asked, SAID, user('blue'), CALLED, CALLED, SAID, user('yes'))).toBe('done');
  // Killed before it could report.
  expect(next(...asked, user('blue'))).toBe('→tool:x');
});

test('a question that could only be said is also followed by an answer', () => {
  expect(next(user('[[ask q]] [[done]]'), SAID, user('blue'))).toBe('done');
});

test('a directive that broke a turn is not repeated, nor are those after it', () => {
  expect(next(user('[[http 500]] [[answer a]]'))).toBe('→http');
  expect(next(user('[[http 500]] [[answer a]]'), user('go on'))).toBe('You said: go on/Earlier turns: 1.');
  expect(next(user('[[tool x]] [[answer a]]'), CALLED, user('go on'))).toBe('You said: go on/Earlier turns: 1.');
});

test('directives after a question survive a broken turn', () => {
  const asked = [user('[[ask q]] [[hang]] [[answer a]]'), CALLED, SAID];
  expect(next(...asked, user('blue'))).toBe('→hang');
  expect(next(...asked, user('blue'), user('again'))).toBe('a');
  expect(next(...asked, user('blue [[cut]]'), user('again'))).toBe('→hang');
  // Stopped while the command ran: its result is still to come.
  expect(next(user('[[ask q]] [[tool x]] [[answer a]]'), CALLED, SAID, user('blue'), CALLED, user('again'))).toBe('a');
});

test('without a directive it repeats its input and the number of turns, never the rules that Parley adds', () => {
  expect(next(user(buildFirstPrompt('interactive', 'hello')))).toBe('You said: hello/Earlier turns: 0.');
  expect(next(user('[[tool x]]'), CALLED)).toBe('Done./Earlier turns: 0.');
  expect(next(user(buildFirstPrompt('interactive', '[[answer a]] [[ask q]]')))).toBe('a →ask');
});

test('calls beside one another are one response, and each of them is behind it', () => {
  const prompt = user('[[approve x]] [[beside]] [[approve y]] [[beside]] [[patch /f]] [[answer a]]');
  expect(next(prompt)).toBe('→approve:x →approve:y →patch');
  expect(next(prompt, CALLED, CALLED, CALLED)).toBe('a');
});

test('a question whose call lasted until its answer does not end the turn', () => {
  expect(next(user('[[ask q]] [[done]]'), CALLED, ANSWERED)).toBe('done');
  // Interrupted, and answered in another turn.
  expect(next(user('[[ask q]] [[done]]'), CALLED, LOST, user('You asked: q\nThe answer: blue'))).toBe('done');
});

test('an interrupted call is made again when it is approved, and skipped when it is declined', () => {
  const asked = [user('[[approve x]] [[answer a]]'), CALLED, LOST];
  expect(next(...asked, user('The person approved this action: {"command":"x"}\nDo it now.'))).toBe('→approve:x');
  expect(next(...asked, user('The person approved this action: {"command":"x"}\nDo it now.'), CALLED)).toBe('a');
  expect(next(...asked, user('The person declined this action: {"command":"x"}\nDo not.'))).toBe('a');
  // The note has directives of its own.
  expect(next(...asked, user('The person approved this action: {"command":"x"}\nTheir note: [[approve y]]'))).toBe(
    '→approve:y',
  );
  expect(next(...asked, user('go on'))).toBe('You said: go on/Earlier turns: 1.');
});
