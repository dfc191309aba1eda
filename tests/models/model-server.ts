// A scripted model service on 127.0.0.1: records its requests and sends the next move of the conversation in its
// protocol. It keeps no state between two requests. The models' own files define the paths and formats.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { readRequest, type RecordedRequest } from './read-request.js';
import { planMove, type Entry, type ModelStep, type Move } from './script.js';

export interface ModelServer {
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  // Resolves as soon as so many requests have come.
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

export type ToolCall =
  // `asksLeave`: asks for permission to run outside the sandbox.
  | { readonly type: 'tool'; readonly command: string; readonly asksLeave?: boolean }
  | { readonly type: 'file'; readonly name: string; readonly content: string }
  // The tool as the client offered it.
  | { readonly type: 'ask'; readonly tool: OfferedTool; readonly input: JsonObject };

export interface OfferedTool {
  readonly name: string;
  readonly namespace?: string;
}

interface Conversation {
  readonly entries: readonly Entry[];
  readonly offered: readonly OfferedTool[];
  // A new voice writes one response.
  readonly createVoice: () => Voice;
}

// Each method returns the text for the wire. A voice remembers the earlier parts of its one response.
export interface Voice {
  begin(): string;
  piece(text: string): string;
  endMessage(): string;
  call(call: ToolCall): string;
  end(): string;
  // The error response of the service.
  decline(): string;
}

type Reply =
  | { readonly type: 'conversation'; readonly conversation: Conversation }
  | { readonly type: 'json'; readonly status: number; readonly body: Json }
  | { readonly type: 'stream'; readonly frames: readonly string[] };

export interface Dialect {
  // The response to a request.
  answer(request: RecordedRequest): Reply;
  errorBody(status: number, message: string): Json;
}

const UTF8_TEXT = 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀';
const MAX_PIECE_CHARS = 64 * 1024;
const SLOW_PIECE_CHARS = 8;

export async function startModel(dialect: Dialect): Promise<ModelServer> {
  const requests: RecordedRequest[] = [];
  const waiting = new Set<{ count: number; resolve: () => void }>();
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      // The client may disconnect in the middle of a response. Every other error is a mistake in these tests.
      if (!response.destroyed) response.destroy();
      if (!isGone(error)) throw error;
    });
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const recorded = await readRequest(request);
    requests.push(recorded);
    for (const waiter of waiting) if (requests.length >= waiter.count) waiter.resolve();
    const reply = dialect.answer(recorded);
    if (reply.type === 'json') sendJson(response, reply.status, reply.body);
    else if (reply.type === 'stream') await playFrames(response, reply.frames);
    else await playMove(response, dialect, reply.conversation);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received: (count) =>
      requests.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.add({ count, resolve })),
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function isGone(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === 'AbortError' ||
      ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'].includes(
        String((error as NodeJS.ErrnoException).code),
      ))
  );
}

function sendJson(response: ServerResponse, status: number, body: Json, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

async function playFrames(response: ServerResponse, frames: readonly string[]): Promise<void> {
  const wire = openWire(response);
  for (const frame of frames) await wire.write(frame);
  response.end();
}

async function playMove(response: ServerResponse, dialect: Dialect, conversation: Conversation): Promise<void> {
  const move = planMove(conversation.entries);
  const voice = conversation.createVoice();
  // These are the whole response; earlier steps of the same response are dropped.
  switch (move.end?.type) {
    case 'http': {
      const { status, retryMs } = move.end;
      sendJson(
        response,
        status,
        dialect.errorBody(status, `Scripted failure ${status}.`),
        retryMs === undefined ? {} : { 'retry-after-ms': String(retryMs) },
      );
      return;
    }
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<!doctype html><html><body><h1>It works</h1></body></html>\n');
      return;
    case 'crash':
      response.destroy();
      return;
    case 'empty':
      await playFrames(response, [voice.begin(), voice.end()]);
      return;
    case 'fail':
      await playFrames(response, [voice.begin(), voice.decline()]);
      return;
    default:
      await playSpeech(response, move, conversation, voice);
  }
}

async function playSpeech(
  response: ServerResponse,
  move: Move,
  conversation: Conversation,
  voice: Voice,
): Promise<void> {
  const wire = openWire(response);
  let pause = 0;
  const say = async (text: string) => {
    for (const piece of cut(text, pause > 0 ? SLOW_PIECE_CHARS : MAX_PIECE_CHARS)) {
      await wire.write(voice.piece(piece));
      if (pause > 0) await wire.pause(pause);
    }
    await wire.write(voice.endMessage());
  };
  // A model that hangs from the start does not even send its first event.
  if (move.end?.type === 'hang' && !move.says.some((step) => step.type !== 'sleep')) return wire.never();
  await wire.write(voice.begin());
  for (const step of move.says) {
    if (step.type === 'slow') pause = step.ms;
    else if (step.type === 'sleep') await wire.pause(step.ms);
    else for (const text of textsOf(step)) await say(text);
  }
  switch (move.end?.type) {
    case 'tool':
    case 'approve':
    case 'file':
    case 'patch':
      for (const step of [move.end, ...move.beside])
        for (const call of callsOf(step)) await wire.write(voice.call(call));
      break;
    case 'ask': {
      const tool = conversation.offered.find(({ name }) => name.endsWith('ask_human'));
      const input = { prompt: move.end.question, options: [...move.end.options] };
      if (tool) await wire.write(voice.call({ type: 'ask', tool, input }));
      else
        await say(
          'The tool ask_human is not ' +
            `offered.${tellsOfEnvelope(conversation) ? `\n${JSON.stringify({ ask_user: input })}` : ''}`,
        );
      break;
    }
    case 'call': {
      const { name } = move.end;
      const tool = conversation.offered.find((offered) => offered.name === name);
      if (tool) await wire.write(voice.call({ type: 'ask', tool, input: {} }));
      else await say(`The tool ${name} is not offered.`);
      break;
    }
    case 'hang':
      return wire.never();
    case 'cut':
      await wire.write(voice.piece('This answer is cut o'));
      response.destroy();
      return;
    case 'badsse':
      await wire.write(voice.piece('This is no '));
      await wire.write('data: {"this is no":\n\n');
      response.end();
      return;
    default:
      break;
  }
  await wire.write(voice.end());
  response.end();
}

function callsOf(step: ModelStep): ToolCall[] {
  switch (step.type) {
    case 'tool':
      return [step];
    case 'approve':
      return [{ type: 'tool', command: step.command, asksLeave: true }];
    case 'file':
      return [{ ...step, content: `${step.name}\n` }];
    case 'patch':
      return [{ type: 'file', name: step.path, content: 'patched\n' }];
    default:
      return [];
  }
}

// As the prompt requires from a model without the tool.
function tellsOfEnvelope({ entries }: Conversation): boolean {
  return entries.some((entry) => entry.type === 'user' && entry.text.includes('"ask_user"'));
}

function textsOf(step: ModelStep): Iterable<string> {
  switch (step.type) {
    case 'answer':
      return [step.text];
    case 'done':
      return [JSON.stringify({ done: true, result: step.result })];
    case 'utf8':
      return [UTF8_TEXT];
    case 'huge':
      return ['x'.repeat(step.bytes)];
    case 'events':
      return Array.from({ length: step.count }, () => 'x'.repeat(step.bytes));
    default:
      // The other directives concern the CLI itself.
      return [];
  }
}

function* cut(text: string, size: number): Generator<string> {
  for (let from = 0; from < text.length; from += size) yield text.slice(from, from + size);
}

interface Wire {
  write(frame: string): Promise<void>;
  pause(ms: number): Promise<void>;
  // Waits until the client disconnects.
  never(): Promise<void>;
}

// Writes no faster than the client reads, and stops when it disconnects.
function openWire(response: ServerResponse): Wire {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const { signal } = gone;
  return {
    async write(frame) {
      if (frame === '') return;
      if (!response.headersSent)
        response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      await new Promise<void>((resolve, reject) => {
        response.write(frame, (error) => (error ? reject(error) : resolve()));
      });
    },
    pause: (ms) => sleep(ms, undefined, { signal }),
    never: () => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  };
}
