// Distinguishes a refused login from every other failure, by the real messages of the engines.
import { expect, test } from 'vitest';
import { classifyFailure } from '../../src/engines/auth-failure.js';

test.each([
  'unexpected status 401 Unauthorized: Incorrect API key provided: bad.',
  'Missing environment variable: `OPENAI_API_KEY`.',
  'Please set an Auth method in your settings.json',
  '{"error":{"code":403,"status":"PERMISSION_DENIED"}}',
  'API key not valid. Please pass a valid API key.',
])('a refused login: %s', (message) => {
  expect(classifyFailure(message)).toEqual({ kind: 'auth', message });
});

test.each([
  '[API Error: slow down]\nPlease wait and try again later. To increase your limits, request a quota increase ' +
    'through AI Studio, or switch to another /auth method',
  'exceeded retry limit, last status: 429 Too Many Requests',
  'You have exhausted your daily quota on this model. Choose another auth method.',
  'stream disconnected before completion',
])('something else: %s', (message) => {
  expect(classifyFailure(message).kind).toBe('turn');
});

test('a status that the engine gives decides before the words do', () => {
  expect(classifyFailure('unauthorized', 429).kind).toBe('turn');
  expect(classifyFailure('rate limit', 401).kind).toBe('auth');
  expect(classifyFailure('no', 403).kind).toBe('auth');
  expect(classifyFailure('no', 500).kind).toBe('turn');
});
