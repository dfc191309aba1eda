// The question tool as an MCP server: an agent asks a person with it, gets a receipt, and ends its turn. It validates
// little: any input of an agent becomes a question that a person can read.
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { Server } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { isObject, type Json, type JsonObject } from '../kernel/json.js';
import { appendAsk } from './ask-file.js';
import { ASK_INPUT, ASK_TOOL } from './ask-tool.js';
import { writeReceipt } from './receipt.js';

const TOOL = {
  name: ASK_TOOL,
  title: 'Ask a person',
  description:
    'Ask the person you work for. Use it when you need a decision, a fact or a permission that you cannot find ' +
    'yourself. The person may be away: after the call END YOUR TURN at once; the answer comes as the next message.',
  inputSchema: ASK_INPUT,
  // The tool changes nothing, so engines need no approval for it.
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false },
};

export interface AskServerOptions {
  readonly file: string;
  readonly nonce: string;
  readonly version: string;
  readonly input: Readable;
}

// Serves on stdin and stdout until stdin ends.
export async function serveAskTool({ file, nonce, version, input }: AskServerOptions): Promise<void> {
  const server = new Server({ name: 'parley', version }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => {
    appendAsk(file, nonce, { type: 'listed' });
    return { tools: [TOOL] };
  });
  server.setRequestHandler('tools/call', async ({ params }) => {
    if (params.name !== ASK_TOOL) return refusal(`there is no tool ${params.name}`);
    const question = (params.arguments ?? {}) as JsonObject;
    if (!hasWords(question))
      return refusal('the question is missing: give it as "prompt", or several of them as "fields"');
    appendAsk(file, nonce, { type: 'asked', question });
    return { content: [{ type: 'text' as const, text: writeReceipt(nonce) }] };
  });
  // An engine that exits closes the pipe.
  const ended = once(input, 'end');
  await server.connect(new StdioServerTransport());
  await ended;
}

function hasWords(question: JsonObject): boolean {
  const texts: (Json | undefined)[] = [question.prompt, question.question, question.message];
  return (
    isObject(question) &&
    (texts.some((text) => typeof text === 'string' && text.trim() !== '') ||
      (Array.isArray(question.fields) && question.fields.length > 0))
  );
}

function refusal(text: string) {
  return { isError: true, content: [{ type: 'text' as const, text }] };
}
