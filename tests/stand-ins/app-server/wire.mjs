// The conversation with the client, one JSON object per line, in the form of the real one: no `jsonrpc`, every
// notification with `emittedAtMs`, the ids of our own requests counted from 0. Lines that are not messages are ignored.

const BAD_REQUEST = -32600;

// A refused request; only the text distinguishes the reasons.
export class BadRequest extends Error {}

const optedOut = new Set();
const waiting = new Map();
let nextId = 0;

// A client that disconnects ends the process, without a message.
process.stdout.on('error', () => process.exit(0));

function send(message) {
  return process.stdout.write(`${JSON.stringify(message)}\n`);
}

// Resolves when the client has read everything written so far.
export function flush() {
  return new Promise((resolve) => {
    process.stdout.write('', resolve);
  });
}

export function optOut(methods) {
  for (const method of methods) optedOut.add(method);
}

// False if the client is slow: call `flush` before writing more.
export function notify(method, params) {
  return optedOut.has(method) || send({ method, params, emittedAtMs: Date.now() });
}

export const answer = (id, result) => send({ id, result });
export const refuse = (id, message) => send({ error: { code: BAD_REQUEST, message }, id });

// Sends a request to the client. `reply` resolves with {result} or {error}; never, if the request is withdrawn.
export function ask(method, params) {
  const id = nextId;
  nextId += 1;
  send({ method, id, params });
  const reply = new Promise((resolve) => {
    waiting.set(id, { resolve, threadId: params.threadId });
  });
  return { id, reply };
}

// A later response to it is ignored.
export function withdraw(id) {
  resolveRequest(id);
}

function resolveRequest(id) {
  const asked = waiting.get(id);
  if (!asked) return undefined;
  waiting.delete(id);
  notify('serverRequest/resolved', { threadId: asked.threadId, requestId: id });
  return asked.resolve;
}

// Calls `handle` for each request and notification, in their order; ends with stdin.
export async function listen(handle) {
  for await (const line of readLines(process.stdin)) {
    const message = readMessage(line);
    if (message === undefined) continue;
    if (typeof message.method === 'string') handle(message);
    else if ('result' in message || 'error' in message) resolveRequest(message.id)?.(message);
  }
}

// Splits only at line feeds: readline also splits at other characters, depending on the version of Node.
async function* readLines(input) {
  let rest = '';
  for await (const text of input.setEncoding('utf8')) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function readMessage(line) {
  try {
    const value = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
