// The OpenAI chat completions service as OpenCode uses it. The request for a title of the session is answered with one.
import { asString, isObject, type Json, type JsonObject } from '../../src/kernel/json.js';
import {
  startModel,
  type Dialect,
  type ModelServer,
  type OfferedTool,
  type ToolCall,
  type Voice,
} from './model-server.js';
import { listObjects } from './read-request.js';
import type { Entry } from './script.js';

export function startOpencodeModel(): Promise<ModelServer> {
  return startModel(dialect);
}

const dialect: Dialect = {
  answer({ path, body }) {
    if (!path.endsWith('/chat/completions'))
      return { type: 'json', status: 404, body: dialect.errorBody(404, `No ${path} here.`) };
    const messages = listObjects(body.messages);
    const voice = () => createVoice(messages.length);
    if (messages.some((message) => message.role === 'system' && /title generator/i.test(toText(message.content)))) {
      const title = voice();
      return { type: 'stream', frames: [title.begin(), title.piece('A scripted conversation'), title.end()] };
    }
    return {
      type: 'conversation',
      conversation: { entries: messages.flatMap(toEntries), offered: listTools(body.tools), createVoice: voice },
    };
  },
  errorBody: (status, message) => ({
    error: { message, type: status === 429 ? 'rate_limit_error' : 'scripted', code: null, param: null },
  }),
};

function listTools(tools: Json | undefined): OfferedTool[] {
  return listObjects(tools).flatMap((tool) =>
    isObject(tool.function) && typeof tool.function.name === 'string' ? [{ name: tool.function.name }] : [],
  );
}

function toText(content: Json | undefined): string {
  return (
    asString(content) ??
    listObjects(content)
      .map((part) => asString(part.text) ?? '')
      .join('\n')
  );
}

function toEntries(message: JsonObject): Entry[] {
  const text = toText(message.content);
  if (message.role === 'user') return [{ type: 'user', text }];
  if (message.role !== 'assistant') return [];
  return [
    ...(text === '' ? [] : [{ type: 'said' } as const]),
    ...listObjects(message.tool_calls).map(() => ({ type: 'called' }) as const),
  ];
}

// All messages of a response are one text here; each begins on a line of its own.
function createVoice(seen: number): Voice {
  let between = '';
  let calls = 0;
  const send = (choices: readonly object[], more: object = {}) => {
    const id = `chatcmpl-${seen}`;
    const body = { id, object: 'chat.completion.chunk', created: 0, model: 'scripted', choices, ...more };
    return `data: ${JSON.stringify(body)}\n\n`;
  };
  const chunk = (delta: JsonObject, finish: string | null = null) => send([{ index: 0, delta, finish_reason: finish }]);
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const close = (finish: string) => `${chunk({}, finish)}${send([], { usage })}data: [DONE]\n\n`;
  return {
    begin: () => chunk({ role: 'assistant', content: '' }),
    piece(text) {
      const content = between + text;
      between = '';
      return chunk({ content });
    },
    endMessage() {
      between = '\n';
      return '';
    },
    call(call) {
      const index = calls;
      calls += 1;
      return chunk({
        tool_calls: [{ index, id: `call_${seen}_${index}`, type: 'function', function: toFunction(call) }],
      });
    },
    end: () => close(calls > 0 ? 'tool_calls' : 'stop'),
    decline: () => close('content_filter'),
  };
}

function toFunction(call: ToolCall): JsonObject {
  switch (call.type) {
    case 'tool':
      return {
        name: 'bash',
        arguments: JSON.stringify({ command: call.command, description: 'Runs a scripted command' }),
      };
    case 'file':
      return { name: 'write', arguments: JSON.stringify({ filePath: call.name, content: call.content }) };
    case 'ask':
      return { name: call.tool.name, arguments: JSON.stringify(call.input) };
    default:
      return call satisfies never;
  }
}
