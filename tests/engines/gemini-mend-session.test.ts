// A stored session of Gemini contains each tool result twice; the repair keeps each once and changes nothing else.
import { expect, test } from 'vitest';
import { mendSession } from '../../src/engines/gemini/mend-session.js';

const HEADER = '{"sessionId":"8cb64708-b71d-48e8-9638-66def7d14245","projectHash":"x"}';
const call = (id: string, rest: object = {}) => ({ id, name: 'read_file', args: { p: 1 }, status: 'success', ...rest });
const model = (...toolCalls: object[]) => ({ id: 'm', type: 'gemini', content: '', toolCalls });
const answer = (...ids: string[]) => ({
  id: 'u',
  type: 'user',
  content: ids.map((id) => ({ functionResponse: { id, name: 'read_file', response: { output: 'x' } } })),
});
const lines = (...each: (object | string)[]) =>
  each.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');

test('a result that a message of the user holds too is taken out of the call', () => {
  const session = lines(HEADER, model(call('a', { result: [1] }), call('b', { result: [2] })), answer('a', 'b'), '');
  expect(mendSession(session)).toBe(lines(HEADER, model(call('a'), call('b')), answer('a', 'b'), ''));
});

test('the same within messages that are set at once', () => {
  const session = lines(HEADER, { $set: { messages: [model(call('a', { result: [1] })), answer('a')] } });
  expect(mendSession(session)).toBe(lines(HEADER, { $set: { messages: [model(call('a')), answer('a')] } }));
});

test('a result that is stored nowhere else stays, and intact lines stay unchanged', () => {
  const odd = '{ "type":"gemini",  "content":"spaces stay" }';
  const session = lines(
    HEADER,
    odd,
    'not json at all',
    model(call('a', { result: [1] }), call('b', { result: [2] })),
    answer('b'),
  );
  const mended = mendSession(session).split('\n');
  expect(mended.slice(0, 3)).toEqual([HEADER, odd, 'not json at all']);
  expect(mended[3]).toBe(JSON.stringify(model(call('a', { result: [1] }), call('b'))));
});

test('doing it again changes nothing, and a session without tools is untouched', () => {
  const session = lines(HEADER, model(call('a', { result: [1] })), answer('a'));
  expect(mendSession(mendSession(session))).toBe(mendSession(session));
  expect(mendSession(lines(HEADER, '{"type":"user","content":"hi"}'))).toBe(
    lines(HEADER, '{"type":"user","content":"hi"}'),
  );
  expect(mendSession('')).toBe('');
});
