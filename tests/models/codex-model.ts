// The OpenAI Responses service as Codex uses it: POST …/responses, answered as server-sent events.
import { asString, type Json, type JsonObject } from '../../src/kernel/json.js';
import {
  startModel,
  type Dialect,
  type ModelServer,
  type OfferedTool,
  type ToolCall,
  type Voice,
} from './model-server.js';
import { isContext, listObjects } from './read-request.js';
import type { Entry } from './script.js';

export function startCodexModel(): Promise<ModelServer> {
  return startModel(dialect);
}

const dialect: Dialect = {
  answer({ method, path, body }) {
    if (method !== 'POST' || !path.endsWith('/responses'))
      return { type: 'json', status: 404, body: dialect.errorBody(404, `No ${method} ${path} here.`) };
    const offered = listTools(body.tools);
    const items = listObjects(body.input);
    const patches = offered.some(({ name }) => name === 'apply_patch');
    return {
      type: 'conversation',
      conversation: {
        entries: toEntries(items, offered),
        offered,
        createVoice: () => createVoice(items.length, patches),
      },
    };
  },
  errorBody: (status, message) => ({
    error: { message, type: status === 429 ? 'rate_limit_exceeded' : 'scripted', code: null, param: null },
  }),
};

// The tools of an MCP server come as one entry with a namespace.
function listTools(tools: Json | undefined): OfferedTool[] {
  return listObjects(tools).flatMap((tool): OfferedTool[] => {
    const name = asString(tool.name);
    if (name === undefined) return [];
    if (tool.type !== 'namespace') return [{ name }];
    return listObjects(tool.tools).flatMap((each) =>
      typeof each.name === 'string' ? [{ name: each.name, namespace: name }] : [],
    );
  });
}

function toEntries(items: readonly JsonObject[], offered: readonly OfferedTool[]): Entry[] {
  // A call of the client itself lasts until the answer.
  const waits = offered.some(({ name, namespace }) => name === 'ask_human' && namespace === undefined);
  const questions = new Set(
    items
      .filter(({ type, name }) => waits && type === 'function_call' && name === 'ask_human')
      .map((item) => item.call_id),
  );
  return items.flatMap((item) => toEntry(item, questions));
}

function toEntry(item: JsonObject, questions: ReadonlySet<Json | undefined>): Entry[] {
  if (item.type === 'function_call' || item.type === 'custom_tool_call') return [{ type: 'called' }];
  if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
    if (isAborted(item.output)) return [{ type: 'lost' }];
    return questions.has(item.call_id) ? [{ type: 'answered' }] : [];
  }
  if (item.type !== 'message') return [];
  if (item.role === 'assistant') return [{ type: 'said' }];
  const text = listObjects(item.content)
    .map((part) => asString(part.text) ?? '')
    .join('\n');
  return item.role === 'user' && !isContext(text) && !text.startsWith('# AGENTS.md') ? [{ type: 'user', text }] : [];
}

// Codex adds this for a call without an end: killed, or interrupted.
const ABORTED = /^(?:Wall time: [^\n]*\n)?aborted\b|^dynamic tool call was cancelled/;

function isAborted(output: Json | undefined): boolean {
  return ABORTED.test(
    asString(output) ??
      listObjects(output)
        .map((part) => asString(part.text) ?? '')
        .join(''),
  );
}

// The number of existing items makes the ids new in each response.
function createVoice(seen: number, patches: boolean): Voice {
  const id = `resp_${seen}`;
  let items = 0;
  let message = '';
  const done = (item: JsonObject) => event('response.output_item.done', { output_index: items++, item });
  const itemId = (kind: string) => `${kind}_${seen}_${items}`;
  return {
    begin: () => event('response.created', { response: { id } }),
    piece(text) {
      const opening =
        message === ''
          ? event('response.output_item.added', {
              output_index: items,
              item: { type: 'message', role: 'assistant', id: itemId('msg'), content: [] },
            })
          : '';
      message += text;
      return (
        opening +
        event('response.output_text.delta', {
          item_id: itemId('msg'),
          output_index: items,
          content_index: 0,
          delta: text,
        })
      );
    },
    endMessage() {
      const content = [{ type: 'output_text', text: message }];
      message = '';
      return done({ type: 'message', role: 'assistant', id: itemId('msg'), content });
    },
    call: (call) => done({ call_id: itemId('call'), ...toItem(call, patches) }),
    end: () => event('response.completed', { response: { id, usage: USAGE } }),
    decline: () =>
      event('response.failed', {
        response: { id, error: { code: 'invalid_prompt', message: 'Scripted: this prompt is not answered.' } },
      }),
  };
}

function event(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

const USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 10 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 120,
};

// Without the patch tool, a model passes the patch to the shell, where Codex finds it.
function toItem(call: ToolCall, patches: boolean): JsonObject {
  switch (call.type) {
    case 'tool':
      return {
        type: 'function_call',
        name: 'exec_command',
        arguments: JSON.stringify({
          cmd: call.command,
          ...(call.asksLeave
            ? { sandbox_permissions: 'require_escalated', justification: 'It has to be done outside.' }
            : {}),
        }),
      };
    case 'file': {
      const patch = `*** Begin Patch\n*** Add File: ${call.name}\n${call.content
        .trimEnd()
        .split('\n')
        .map((line) => `+${line}\n`)
        .join('')}*** End Patch`;
      if (patches) return { type: 'custom_tool_call', name: 'apply_patch', input: patch };
      return {
        type: 'function_call',
        name: 'exec_command',
        arguments: JSON.stringify({ cmd: `apply_patch <<'PATCH'\n${patch}\nPATCH\n` }),
      };
    }
    case 'ask':
      return { type: 'function_call', ...call.tool, arguments: JSON.stringify(call.input) };
    default:
      return call satisfies never;
  }
}
