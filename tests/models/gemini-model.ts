// The Gemini service as its CLI uses it: streamGenerateContent for the conversation, generateContent for side calls. As
// the real service is reported to do, it refuses a conversation in which the results of tools do not match the calls.
import { asString, isObject, type Json, type JsonObject } from '../../src/kernel/json.js';
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

const UNMATCHED =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the ' +
  'function call turn.';
const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
};

export function startGeminiModel(): Promise<ModelServer> {
  return startModel(dialect);
}

const dialect: Dialect = {
  answer({ path, body }) {
    const contents = listObjects(body.contents);
    if (path.includes(':countTokens')) return { type: 'json', status: 200, body: { totalTokens: 100 } };
    if (path.includes(':generateContent')) return { type: 'json', status: 200, body: answerSideCall(body) };
    if (!path.includes(':streamGenerateContent'))
      return { type: 'json', status: 404, body: dialect.errorBody(404, `No ${path} here.`) };
    if (!resultsMatchCalls(contents)) return { type: 'json', status: 400, body: dialect.errorBody(400, UNMATCHED) };
    return {
      type: 'conversation',
      conversation: { entries: contents.flatMap(toEntries), offered: listTools(body.tools), createVoice },
    };
  },
  errorBody: (status, message) => ({ error: { code: status, message, status: STATUS_NAMES[status] ?? 'UNKNOWN' } }),
};

// Side calls ask for a model or for a summary: one response satisfies all of them.
function answerSideCall(body: JsonObject): Json {
  const wantsJson = isObject(body.generationConfig) && body.generationConfig.responseMimeType === 'application/json';
  const text = wantsJson
    ? JSON.stringify({
        reasoning: 'Scripted.',
        model_choice: 'flash',
        complexity_reasoning: 'Scripted.',
        complexity_score: 1,
      })
    : 'A scripted conversation.';
  return toChunk([{ text }], 'STOP');
}

// Each turn of calls is followed by as many results, and results follow nothing else.
function resultsMatchCalls(contents: readonly JsonObject[]): boolean {
  let open = 0;
  for (const content of contents) {
    const parts = listObjects(content.parts);
    if (content.role === 'model') {
      if (open !== 0) return false;
      open = parts.filter((part) => 'functionCall' in part).length;
    } else {
      const results = parts.filter((part) => 'functionResponse' in part).length;
      if (results !== open) return false;
      open = 0;
    }
  }
  return open === 0;
}

function listTools(tools: Json | undefined): OfferedTool[] {
  return listObjects(tools)
    .flatMap((tool) => listObjects(tool.functionDeclarations))
    .flatMap(({ name }) => (typeof name === 'string' ? [{ name }] : []));
}

// Of an interrupted turn only the prompt is left; the next prompt then comes as another part of the same content.
function toEntries({ role, parts }: JsonObject): Entry[] {
  return listObjects(parts).flatMap((part): Entry[] => {
    const text = asString(part.text);
    if (role === 'model')
      return 'functionCall' in part
        ? [{ type: 'called' }]
        : text === undefined || text === ''
          ? []
          : [{ type: 'said' }];
    return text === undefined || isContext(text) ? [] : [{ type: 'user', text }];
  });
}

// All messages of a response are one text here; each begins on a line of its own.
function createVoice(): Voice {
  let between = '';
  return {
    begin: () => '',
    piece(text) {
      const frame = toFrame([{ text: between + text }]);
      between = '';
      return frame;
    },
    endMessage() {
      between = '\n';
      return '';
    },
    call: (call) => toFrame([{ functionCall: toFunctionCall(call) }]),
    end: () => toFrame([], 'STOP'),
    decline: () => toFrame([], 'SAFETY'),
  };
}

function toChunk(parts: Json[], finishReason?: string): JsonObject {
  return {
    candidates: [
      { index: 0, content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) },
    ],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 },
    modelVersion: 'scripted',
  };
}

// The SDK splits lines at these two characters, which JSON may contain unescaped.
function toFrame(parts: Json[], finishReason?: string): string {
  const json = JSON.stringify(toChunk(parts, finishReason))
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
  return `data: ${json}\r\n\r\n`;
}

function toFunctionCall(call: ToolCall): JsonObject {
  switch (call.type) {
    case 'tool':
      return { name: 'run_shell_command', args: { command: call.command } };
    case 'file':
      return { name: 'write_file', args: { file_path: call.name, content: call.content } };
    case 'ask':
      return { name: call.tool.name, args: call.input };
    default:
      return call satisfies never;
  }
}
