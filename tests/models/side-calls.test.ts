// Behaviour of a single service: Gemini's check of results and its side calls, OpenCode's titles, Codex without its
// patch tool.
import { expect, onTestFinished, test } from 'vitest';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { startCodexModel } from './codex-model.js';
import { startGeminiModel } from './gemini-model.js';
import { startOpencodeModel } from './opencode-model.js';
import type { ModelServer } from './model-server.js';

async function post(
  starting: Promise<ModelServer>,
  path: string,
  body: JsonObject,
): Promise<{ status: number; text: string }> {
  const model = await starting;
  onTestFinished(() => model.close());
  const response = await fetch(model.url + path, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

const STREAM = '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse';
const prompt: Json = { role: 'user', parts: [{ text: '[[tool a]] [[answer ok]]' }] };
const call: Json = { role: 'model', parts: [{ functionCall: { name: 'run_shell_command', args: {} } }] };
const result: Json = { functionResponse: { name: 'run_shell_command', response: {} } };

test('Gemini takes a conversation with one result for each call', async () => {
  const heard = await post(startGeminiModel(), STREAM, { contents: [prompt, call, { role: 'user', parts: [result] }] });
  expect(heard.status).toBe(200);
  expect(heard.text).toContain('"text":"ok"');
});

test.each<[string, Json[]]>([
  ['twice in one content', [prompt, call, { role: 'user', parts: [result, result] }]],
  ['twice in two contents', [prompt, call, { role: 'user', parts: [result] }, { role: 'user', parts: [result] }]],
  ['not at all', [prompt, call, { role: 'user', parts: [{ text: 'go on' }] }]],
  ['without a call', [prompt, { role: 'user', parts: [result] }]],
])('Gemini refuses a result %s', async (_, contents) => {
  const heard = await post(startGeminiModel(), STREAM, { contents });
  expect(heard.status).toBe(400);
  expect(heard.text).toContain(
    'Please ensure that the number of function response parts is equal to the number of function call parts of ' +
      'the function call turn.',
  );
});

test('Gemini escapes the two characters at which its SDK would cut a line', async () => {
  const heard = await post(startGeminiModel(), STREAM, {
    contents: [{ role: 'user', parts: [{ text: '[[answer a\u2028b\u2029c]]' }] }],
  });
  expect(heard.text).toContain('a\\u2028b\\u2029c');
});

test('Gemini answers side calls, in JSON if that is wanted', async () => {
  const path = '/v1beta/models/gemini-3.5-flash-lite:generateContent';
  expect((await post(startGeminiModel(), path, { contents: [prompt] })).text).toContain('A scripted conversation.');
  expect(
    (
      await post(startGeminiModel(), path, {
        contents: [prompt],
        generationConfig: { responseMimeType: 'application/json' },
      })
    ).text,
  ).toContain('model_choice');
  expect((await post(startGeminiModel(), '/v1beta/models/x:countTokens', {})).text).toContain('totalTokens');
});

test('OpenCode gets a title, whatever the prompt says', async () => {
  const messages = [
    { role: 'system', content: 'You are a title generator.' },
    { role: 'user', content: '[[http 500]]' },
  ];
  const heard = await post(startOpencodeModel(), '/v1/chat/completions', { messages });
  expect(heard).toMatchObject({ status: 200, text: expect.stringContaining('A scripted conversation') });
});

test('Codex without its patch tool gives the patch to the shell', async () => {
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: '[[file f.txt]]' }] }];
  const heard = await post(startCodexModel(), '/v1/responses', { input, tools: [] });
  expect(heard.text).toContain('"name":"exec_command"');
  expect(heard.text).toContain("apply_patch <<'PATCH'");
});

const user = (text: string): Json => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });

test('Codex requests approval in its shell arguments and continues after a question answered in its call', async () => {
  const asks = await post(startCodexModel(), '/v1/responses', { input: [user('[[approve make all]]')] });
  expect(asks.text).toContain('\\"cmd\\":\\"make all\\",\\"sandbox_permissions\\":\\"require_escalated\\"');
  const question: Json = { type: 'function_call', name: 'ask_human', call_id: 'c', arguments: '{}' };
  const answered = await post(startCodexModel(), '/v1/responses', {
    tools: [{ type: 'function', name: 'ask_human' }],
    input: [
      user('[[ask Which?]] [[answer I go on.]]'),
      question,
      { type: 'function_call_output', call_id: 'c', output: 'blue' },
    ],
  });
  expect(answered.text).toContain('I go on.');
});
