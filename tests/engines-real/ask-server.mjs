// The smallest MCP server that offers ask_human: writes each question as a line into the file $ASKED and replies that
// it is recorded.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const INPUT_SCHEMA = {
  type: 'object',
  properties: { prompt: { type: 'string' }, options: { type: 'array', items: { type: 'string' } } },
  required: ['prompt'],
};
const TOOL = {
  name: 'ask_human',
  description: 'Asks a person.',
  inputSchema: INPUT_SCHEMA,
  annotations: { readOnlyHint: true },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'desk', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [TOOL] }),
  'tools/call'(params) {
    appendFileSync(process.env.ASKED, `${JSON.stringify(params.arguments)}\n`);
    return { content: [{ type: 'text', text: 'Question recorded. End your turn now and wait.' }] };
  },
  ping: () => ({}),
};

process.on('SIGTERM', () => process.exit(0));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  // A notification gets no response.
  if (id === undefined) continue;
  const answer = METHODS[method];
  const body = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: `No method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
}
