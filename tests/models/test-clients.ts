// Clients of the scripted models: for each protocol, one that sends a conversation and reads the response.
import { isObject, parseJson, type Json, type JsonObject } from '../../src/kernel/json.js';
import { startClaudeModel } from './claude-model.js';
import { startCodexModel } from './codex-model.js';
import { startGeminiModel } from './gemini-model.js';
import type { ModelServer } from './model-server.js';
import { startOpencodeModel } from './opencode-model.js';
import { listObjects } from './read-request.js';

interface Call {
  readonly name: string;
  readonly namespace?: string;
  readonly input: Json;
}

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  // The connection was closed normally.
  readonly whole: boolean;
  readonly text: string;
  readonly pieces: number;
  readonly calls: readonly Call[];
  // The service marked the end.
  readonly ended: boolean;
}

type Read = Pick<Heard, 'text' | 'pieces' | 'calls' | 'ended'>;

interface Protocol {
  readonly name: string;
  readonly start: () => Promise<ModelServer>;
  readonly path: string;
  readonly buildBody: (conversation: readonly Json[], tools: readonly Json[]) => JsonObject;
  readonly askTool: Json;
  readonly read: (frames: readonly JsonObject[], body: string) => Read;
  readonly user: (text: string) => Json;
  readonly assistant: (text: string) => Json;
  // The model's messages and calls, and the results of the calls.
  readonly exchange: (heard: Heard) => Json[];
  // Additions of the CLI before a prompt.
  readonly context: readonly Json[];
  readonly calls: { shell: (command: string) => Call; write: (name: string) => Call; ask: (input: JsonObject) => Call };
  // A marker in the body of an error response.
  readonly declined: string;
}

export interface Client extends Protocol {
  request(
    model: ModelServer,
    conversation: readonly Json[],
    tools?: readonly Json[],
    signal?: AbortSignal,
  ): Promise<Heard>;
}

function readItem({ type, name, namespace, input, arguments: args }: JsonObject): Call {
  const call = { name: String(name), input: (type === 'custom_tool_call' ? input : parseJson(String(args))) ?? null };
  return typeof namespace === 'string' ? { ...call, namespace } : call;
}

const codex: Protocol = {
  name: 'Codex',
  start: startCodexModel,
  path: '/v1/responses',
  buildBody: (input, tools) => ({ input: [...input], tools: [{ type: 'custom', name: 'apply_patch' }, ...tools] }),
  askTool: { type: 'namespace', name: 'mcp__desk', tools: [{ type: 'function', name: 'ask_human' }] },
  read(frames) {
    const items = frames
      .filter((frame) => frame.type === 'response.output_item.done')
      .map((frame) => frame.item as JsonObject);
    const deltas = frames
      .filter((frame) => frame.type === 'response.output_text.delta')
      .map((frame) => String(frame.delta));
    const messages = items
      .filter((item) => item.type === 'message')
      .map((item) => String(listObjects(item.content)[0]?.text));
    return {
      text: messages.length > 0 && frames.at(-1)?.type === 'response.completed' ? messages.join('\n') : deltas.join(''),
      pieces: deltas.length,
      calls: items.filter((item) => item.type !== 'message').map(readItem),
      ended: frames.at(-1)?.type === 'response.completed',
    };
  },
  user: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
  assistant: (text) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }),
  exchange: ({ calls }) =>
    calls.flatMap(({ name }): Json[] => [
      { type: name === 'apply_patch' ? 'custom_tool_call' : 'function_call', call_id: 'c', name },
      { type: 'function_call_output', call_id: 'c', output: 'ok' },
    ]),
  context: [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Rules [[answer no]]' }] },
    {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: '<environment_context>\n <cwd>/x</cwd>\n</environment_context>' }],
    },
  ],
  calls: {
    shell: (cmd) => ({ name: 'exec_command', input: { cmd } }),
    write: (name) => ({
      name: 'apply_patch',
      input: `*** Begin Patch\n*** Add File: ${name}\n+${name}\n*** End Patch`,
    }),
    ask: (input) => ({ name: 'ask_human', namespace: 'mcp__desk', input }),
  },
  declined: 'response.failed',
};

const gemini: Protocol = {
  name: 'Gemini',
  start: startGeminiModel,
  path: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
  buildBody: (contents, tools) => ({
    contents: [...contents],
    tools: [{ functionDeclarations: [{ name: 'write_file' }, ...tools] }],
  }),
  askTool: { name: 'mcp_desk_ask_human' },
  read(frames) {
    const candidates = frames.flatMap((frame) => listObjects(frame.candidates));
    const parts = candidates.flatMap((candidate) =>
      isObject(candidate.content) ? listObjects(candidate.content.parts) : [],
    );
    const texts = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : []));
    return {
      text: texts.join(''),
      pieces: texts.length,
      calls: parts.flatMap(({ functionCall }) =>
        isObject(functionCall) ? [{ name: String(functionCall.name), input: functionCall.args ?? null }] : [],
      ),
      ended: candidates.at(-1)?.finishReason === 'STOP',
    };
  },
  user: (text) => ({ role: 'user', parts: [{ text }] }),
  assistant: (text) => ({ role: 'model', parts: [{ text }] }),
  exchange: ({ calls }) =>
    calls.flatMap(({ name }): Json[] => [
      { role: 'model', parts: [{ functionCall: { name, args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name, response: {} } }] },
    ]),
  context: [{ role: 'user', parts: [{ text: '<session_context>\nThis is the CLI.\n</session_context>' }] }],
  calls: {
    shell: (command) => ({ name: 'run_shell_command', input: { command } }),
    write: (name) => ({ name: 'write_file', input: { file_path: name, content: `${name}\n` } }),
    ask: (input) => ({ name: 'mcp_desk_ask_human', input }),
  },
  declined: '"finishReason":"SAFETY"',
};

const opencode: Protocol = {
  name: 'OpenCode',
  start: startOpencodeModel,
  path: '/v1/chat/completions',
  buildBody: (messages, tools) => ({ messages: [...messages], tools: [...tools], stream: true }),
  askTool: { type: 'function', function: { name: 'desk_ask_human' } },
  read(frames, body) {
    const deltas = frames.flatMap((frame) => listObjects(frame.choices)).map((choice) => choice.delta as JsonObject);
    const texts = deltas.flatMap((delta) =>
      typeof delta.content === 'string' && delta.content !== '' ? [delta.content] : [],
    );
    return {
      text: texts.join(''),
      pieces: texts.length,
      calls: deltas
        .flatMap((delta) => listObjects(delta.tool_calls))
        .map(({ function: called }) => {
          const { name, arguments: input } = called as JsonObject;
          return { name: String(name), input: parseJson(String(input)) ?? null };
        }),
      ended: body.endsWith('data: [DONE]\n\n'),
    };
  },
  user: (text) => ({ role: 'user', content: text }),
  assistant: (text) => ({ role: 'assistant', content: text }),
  exchange: ({ calls }) =>
    calls.flatMap(({ name }): Json[] => [
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'ok' },
    ]),
  context: [{ role: 'system', content: 'Rules [[answer no]]' }],
  calls: {
    shell: (command) => ({ name: 'bash', input: { command, description: 'Runs a scripted command' } }),
    write: (name) => ({ name: 'write', input: { filePath: name, content: `${name}\n` } }),
    ask: (input) => ({ name: 'desk_ask_human', input }),
  },
  declined: '"finish_reason":"content_filter"',
};

function claudeText({ content_block: block, delta }: JsonObject): string {
  if (isObject(block)) return block.type === 'text' ? '\n' : '';
  return isObject(delta) && typeof delta.text === 'string' ? delta.text : '';
}

const claude: Protocol = {
  name: 'Claude Code',
  start: startClaudeModel,
  path: '/v1/messages?beta=true',
  buildBody: (messages, tools) => ({ messages: [...messages], tools: [...tools], stream: true }),
  askTool: { name: 'mcp__desk__ask_human' },
  read(frames) {
    const deltas = frames.filter(({ type }) => type === 'content_block_delta').map(({ delta }) => delta as JsonObject);
    const starts = frames.map(({ content_block: block }) => block).filter(isObject);
    const inputs = deltas.flatMap(({ partial_json: json }) => (typeof json === 'string' ? [json] : []));
    return {
      // Each message is a block of its own.
      text: frames.map(claudeText).join('').trimStart(),
      pieces: deltas.filter(({ type }) => type === 'text_delta').length,
      calls: starts
        .filter(({ type }) => type === 'tool_use')
        .map(({ name }, index) => ({ name: String(name), input: parseJson(inputs[index] ?? '') ?? null })),
      ended: frames.at(-1)?.type === 'message_stop',
    };
  },
  user: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
  assistant: (text) => ({ role: 'assistant', content: [{ type: 'text', text }] }),
  exchange: ({ calls }) =>
    calls.flatMap(({ name, input }): Json[] => [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name, input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
    ]),
  context: [{ role: 'user', content: '<system-reminder>\nRules [[answer no]]\n</system-reminder>\n' }],
  calls: {
    shell: (command) => ({ name: 'Bash', input: { command, description: 'Runs a scripted command' } }),
    write: (name) => ({ name: 'Write', input: { file_path: name, content: `${name}\n` } }),
    ask: (input) => ({ name: 'mcp__desk__ask_human', input }),
  },
  declined: '"stop_reason":"refusal"',
};

export const CLIENTS: readonly Client[] = [claude, codex, gemini, opencode].map(toClient);

function toClient(protocol: Protocol): Client {
  async function request(
    model: ModelServer,
    conversation: readonly Json[],
    tools: readonly Json[] = [protocol.askTool],
    signal?: AbortSignal,
  ): Promise<Heard> {
    const response = await fetch(model.url + protocol.path, {
      method: 'POST',
      headers: { authorization: 'Bearer a-secret', 'x-goog-api-key': 'a-secret' },
      body: JSON.stringify(protocol.buildBody(conversation, tools)),
      ...(signal ? { signal } : {}),
    });
    const { body, whole } = await readBody(response);
    return {
      status: response.status,
      headers: response.headers,
      body,
      whole,
      ...protocol.read(readFrames(body), body),
    };
  }
  return { ...protocol, request };
}

// The part that arrived.
async function readBody(response: Response): Promise<{ body: string; whole: boolean }> {
  const decoder = new TextDecoder();
  let body = '';
  try {
    for await (const chunk of response.body ?? []) body += decoder.decode(chunk as Uint8Array, { stream: true });
    return { body, whole: true };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { body, whole: false };
  }
}

function readFrames(body: string): JsonObject[] {
  // Without a pattern, whose lines would end at U+2028; lines of the protocol do not.
  return body
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? [parseJson(line.slice('data: '.length))] : []))
    .filter(isObject);
}
