// The Anthropic Messages API as Claude Code uses it. It always streams: after a broken stream, Claude Code repeats the
// request without streaming, and takes a stream for a failure then.
import { asString, type JsonObject } from '../../src/kernel/json.js';
import { startModel, type Dialect, type ModelServer, type ToolCall, type Voice } from './model-server.js';
import { listObjects } from './read-request.js';
import type { Entry } from './script.js';

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};
// Claude Code writes these itself when it resumes a session that was cut off, or one with a deferred call.
const OWN_WORDS = new Set(['No response requested.', 'Continue from where you left off.']);
const REMINDER = /<system-reminder>[^]*?<\/system-reminder>/g;

export function startClaudeModel(): Promise<ModelServer> {
  return startModel(dialect);
}

const dialect: Dialect = {
  answer({ path, body }) {
    if (!/^\/v1\/messages(?:\?|$)/.test(path))
      return { type: 'json', status: 404, body: dialect.errorBody(404, `No ${path} here.`) };
    const messages = listObjects(body.messages);
    const offered = listObjects(body.tools).flatMap(({ name }) => (typeof name === 'string' ? [{ name }] : []));
    return {
      type: 'conversation',
      conversation: { entries: messages.flatMap(toEntries), offered, createVoice: () => createVoice(messages.length) },
    };
  },
  errorBody: (status, message) => ({ type: 'error', error: { type: ERROR_TYPES[status] ?? 'api_error', message } }),
};

function toEntries({ role, content }: JsonObject): Entry[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listObjects(content);
  return blocks.flatMap((block): Entry[] => {
    const text = (asString(block.text) ?? '').replaceAll(REMINDER, '').trim();
    if (OWN_WORDS.has(text)) return [];
    if (role === 'user') return text === '' ? [] : [{ type: 'user', text }];
    if (role !== 'assistant') return [];
    if (block.type === 'tool_use') return [{ type: 'called' }];
    return text === '' ? [] : [{ type: 'said' }];
  });
}

function frame(type: string, rest: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
}

function delta(index: number, part: JsonObject): string {
  return frame('content_block_delta', { index, delta: part });
}

function finish(reason: string): string {
  const end = { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 10 } };
  return frame('message_delta', end) + frame('message_stop', {});
}

function createVoice(seen: number): Voice {
  let blocks = 0;
  let isOpen = false;
  let calls = 0;
  return {
    begin: () =>
      frame('message_start', {
        message: {
          id: `msg_scripted_${seen}`,
          type: 'message',
          role: 'assistant',
          model: 'scripted',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 1 },
        },
      }),
    piece(text) {
      const start = isOpen
        ? ''
        : frame('content_block_start', { index: blocks, content_block: { type: 'text', text: '' } });
      isOpen = true;
      return start + delta(blocks, { type: 'text_delta', text });
    },
    endMessage() {
      isOpen = false;
      blocks += 1;
      return frame('content_block_stop', { index: blocks - 1 });
    },
    call(call) {
      const { name, input } = toToolUse(call);
      calls += 1;
      blocks += 1;
      const index = blocks - 1;
      const block = { type: 'tool_use', id: `toolu_${seen}_${calls}`, name, input: {} };
      return (
        frame('content_block_start', { index, content_block: block }) +
        delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(input) }) +
        frame('content_block_stop', { index })
      );
    },
    end: () => finish(calls > 0 ? 'tool_use' : 'end_turn'),
    decline: () => finish('refusal'),
  };
}

function toToolUse(call: ToolCall): { name: string; input: JsonObject } {
  switch (call.type) {
    case 'tool':
      return { name: 'Bash', input: { command: call.command, description: 'Runs a scripted command' } };
    case 'file':
      return { name: 'Write', input: { file_path: call.name, content: call.content } };
    case 'ask':
      return { name: call.tool.name, input: call.input };
    default:
      return call satisfies never;
  }
}
