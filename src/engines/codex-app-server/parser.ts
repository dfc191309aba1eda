// Profile codex_app_server: the output of `codex app-server`, one JSON-RPC message per line without the `jsonrpc`
// member: notifications, requests to the client, and responses to requests of the client. Success is turn/completed
// with the status completed. The server outlives a turn and may report several threads: the memory names the thread of
// the run; other threads belong to subagents, of which only progress is reported.
import type { RequestMessage } from '../../jsonrpc/read-message.js';
import type { ReceivedLine } from '../../jsonrpc/received-line.js';
import { asCount, asObject, asString, isObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { EngineFailure } from '../../run/evidence.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import type { NativeRequest } from '../native-request.js';
import { decodeLine, drifted, readDecodedLine, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader, ReaderMemory } from '../turn-parser.js';
import { itemKey, rememberChanges, rememberItem } from './file-changes.js';
import { ItemReader } from './items.js';
import { REQUESTS, STEPS, TOOL_ITEMS } from './known-names.js';
import { readRequest } from './requests.js';

export const CODEX_APP_SERVER_PROFILE = 'codex_app_server';

// Names of rules that no method has.
const RESPONSE = '(response)';
const OTHER_THREAD = '(other thread)';

const OPENS_THREAD = /^(?:thread\/started$|turn\/|item\/)/;
const MAX_PHASE = 200;

export function createCodexAppServerReader(out: Emitter, memory: ReaderMemory): ParserReader {
  let over = false;
  let success = false;
  let failure: EngineFailure | null = null;
  let unfinished: string | null = 'NO_TURN_COMPLETED';
  let complaint: string | undefined;
  // State of the current line.
  let isOther = false;
  let received: ReceivedLine | undefined;
  // The requests in these lines that may be open, oldest first. The state of each request is in its message.
  let requests: NativeRequest[] = [];
  const items = new ItemReader(out, memory);

  const rules = new Map<string, Rule>([
    ...STEPS.map((method): [string, Rule] => [method, () => progress(method)]),
    ...REQUESTS.map((method): [string, Rule] => [
      method,
      (event) => (idOf(event.id) === undefined ? drifted('id') : progress(method)),
    ]),
    [RESPONSE, response],
    [OTHER_THREAD, (event) => progress(`other thread: ${asString(event.method) ?? '(none)'}`)],
    ['turn/started', withParams(turnStarted)],
    ['turn/completed', withParams(turnCompleted)],
    ['turn/plan/updated', withParams((params) => items.plan(params))],
    ['item/started', withParams((params) => items.item('started', params))],
    ['item/completed', withParams((params) => items.item('completed', params))],
    ['item/agentMessage/delta', withParams((params) => items.messageDelta(params))],
    ['item/commandExecution/outputDelta', withParams((params) => items.outputDelta(params))],
    ['item/fileChange/patchUpdated', withParams((params) => items.patchUpdated(params))],
    ['thread/tokenUsage/updated', withParams(tokenUsage)],
    ['serverRequest/resolved', withParams(requestResolved)],
    ['error', withParams(errorNotification)],
    ['warning', withParams((params) => warning(params, 'message'))],
    ['guardianWarning', withParams((params) => warning(params, 'message'))],
    ['configWarning', withParams((params) => warning(params, 'summary'))],
    ['deprecationNotice', withParams((params) => warning(params, 'summary'))],
  ]);

  function progress(phase: string, reason?: string): undefined {
    out.emit('lifecycle.engine.progress', { phase: phase.slice(0, MAX_PHASE), reason });
  }

  // Runs before the rule, so that a line that drifts still names the session and can still be answered.
  function before(event: JsonObject): void {
    isOther = false;
    const method = asString(event.method);
    if (method === undefined) {
      const result = asObject(event.result);
      if (asString(result?.userAgent) !== undefined && asString(result?.codexHome) !== undefined) beginProcess();
      const thread = named(asObject(result?.thread)?.id);
      // Only requests of the client open a thread: if this is another one, the session has changed.
      if (thread !== undefined && out.sessionId !== thread) follow(thread, asString(result?.model));
      return;
    }
    const params = asObject(event.params);
    const thread = named(params?.threadId) ?? named(asObject(params?.thread)?.id);
    if (thread !== undefined) {
      if (memory.session === null ? OPENS_THREAD.test(method) : memory.session === thread && out.sessionId === null)
        follow(thread);
      isOther = memory.session !== null && memory.session !== thread;
    }
    // Remembers the item, because a later request may ask for its approval.
    if (isOther && params) remember(method, params);
    // Includes requests of threads of subagents: they wait for the answer like any other.
    const id = idOf(event.id);
    if (id !== undefined) addRequest(readRequest(messageOf(id, method, event.params), memory));
    const resolved = method === 'serverRequest/resolved' ? idOf(params?.requestId) : undefined;
    if (resolved !== undefined) withdraw(resolved);
  }

  // For a received line, the same message object that the peer has in its ledger.
  function messageOf(id: string | number, method: string, params: Json | undefined): RequestMessage {
    if (received?.message.type === 'request') return received.message;
    return { type: 'request', id, method, params, state: 'open' };
  }

  // A repeated id replaces the earlier request with that id.
  function addRequest(request: NativeRequest): void {
    requests = [...openRequests().filter(({ message }) => message.id !== request.message.id), request];
  }

  function openRequests(): NativeRequest[] {
    return requests.filter(({ message }) => message.state === 'open');
  }

  // In a running conversation the peer's ledger has already done this.
  function withdraw(id: string | number): void {
    for (const { message } of openRequests()) if (message.id === id) message.state = 'withdrawn';
  }

  function remember(method: string, params: JsonObject): void {
    const item = asObject(params.item);
    const id = named(item?.id);
    if (item && id !== undefined && method === 'item/started')
      rememberItem(memory.items, itemKey(params.threadId, id), item);
    else if (id !== undefined && method === 'item/completed') memory.items.delete(itemKey(params.threadId, id));
    else if (method === 'item/fileChange/patchUpdated' && typeof params.itemId === 'string')
      rememberChanges(memory.items, itemKey(params.threadId, params.itemId), params.changes);
  }

  function follow(thread: string, model?: string): void {
    memory.session = thread;
    out.bindSession(thread, model);
  }

  function nameOf(event: JsonObject): Json | undefined {
    if (isOther) return OTHER_THREAD;
    if (typeof event.method === 'string') return event.method;
    return event.result === undefined && event.error === undefined ? undefined : RESPONSE;
  }

  function response(event: JsonObject): Drift | undefined {
    if (idOf(event.id) === undefined) return drifted('id');
    if (event.error === undefined) return progress('response');
    const message = asString(asObject(event.error)?.message);
    if (message === undefined) return drifted('error.message');
    complaint ??= message;
    out.emit('diagnostic.engine.warning', { message });
    return undefined;
  }

  // The greeting of another process: the requests and the turn of the previous process ended with it.
  function beginProcess(): void {
    requests = [];
    memory.items.clear();
    memory.turn = null;
    complaint = undefined;
    items.forgetMessage();
    beginTurn();
  }

  function beginTurn(): void {
    over = false;
    success = false;
    failure = null;
    unfinished = 'NO_TURN_COMPLETED';
  }

  function turnStarted(params: JsonObject): Drift | undefined {
    memory.turn = asString(asObject(params.turn)?.id) ?? null;
    beginTurn();
    return memory.turn === null ? drifted('turn.id') : progress('turn/started');
  }

  function turnCompleted(params: JsonObject): Drift | undefined {
    const turn = asObject(params.turn);
    const id = asString(turn?.id) ?? null;
    // A repeated end of an earlier turn does not end this turn.
    if (memory.turn === null ? id !== null && id === memory.lastTurn : id !== null && id !== memory.turn)
      return progress('turn/completed', 'of another turn');
    over = true;
    memory.turn = null;
    memory.lastTurn = id;
    // No request can refer to an item of an ended turn.
    memory.items.clear();
    const status = asString(turn?.status);
    success = status === 'completed';
    failure = null;
    unfinished = success ? null : status === 'interrupted' ? 'TURN_INTERRUPTED' : 'NO_TURN_COMPLETED';
    if (status === 'failed') return turnFailed(asObject(turn?.error));
    if (status !== 'completed' && status !== 'interrupted') return drifted(turn ? 'turn.status' : 'turn');
    const message = asString(asObject(turn?.error)?.message);
    if (message !== undefined) out.emit('diagnostic.engine.warning', { message });
    return progress('turn/completed', status === 'interrupted' ? status : undefined);
  }

  function turnFailed(error: JsonObject | undefined): Drift | undefined {
    const { message, details, code, httpStatus } = readError(error);
    // The details say more about the reason, such as the answer of a service.
    const { kind } = classifyFailure([message, details].join('\n'), httpStatus);
    failure = { kind, message: message ?? 'the turn failed' };
    if (message === undefined) return drifted('turn.error.message');
    out.emit('diagnostic.engine.error', { message, terminal: true, code, http_status: httpStatus });
    return undefined;
  }

  function errorNotification(params: JsonObject): Drift | undefined {
    const { message, code, httpStatus } = readError(asObject(params.error));
    if (message === undefined) return drifted('error.message');
    if (params.willRetry === true) out.emit('diagnostic.engine.warning', { message, code });
    else out.emit('diagnostic.engine.error', { message, terminal: false, code, http_status: httpStatus });
    return undefined;
  }

  function warning(params: JsonObject, member: 'message' | 'summary'): Drift | undefined {
    const message = asString(params[member]);
    if (message === undefined) return drifted(member);
    const details = asString(params.details);
    out.emit('diagnostic.engine.warning', { message: details ? `${message}\n${details}` : message });
    return undefined;
  }

  function tokenUsage(params: JsonObject): Drift | undefined {
    const total = asObject(asObject(params.tokenUsage)?.total);
    if (!total) return drifted('tokenUsage.total');
    out.emit('agent.usage', {
      scope: 'thread',
      input_tokens: asCount(total.inputTokens),
      cached_input_tokens: asCount(total.cachedInputTokens),
      output_tokens: asCount(total.outputTokens),
      reasoning_tokens: asCount(total.reasoningOutputTokens),
      total_tokens: asCount(total.totalTokens),
    });
    return undefined;
  }

  function requestResolved(params: JsonObject): Drift | undefined {
    return idOf(params.requestId) === undefined ? drifted('requestId') : progress('serverRequest/resolved');
  }

  const hooks = { before, nameOf };

  return {
    stdoutLine: (text, terminated, line) => {
      received = line;
      const event = isObject(line?.json) ? line.json : decodeLine(out, text);
      readDecodedLine(out, rules, event, text, terminated, hooks);
    },
    longRequest: (message) =>
      addRequest({ message, params: {}, question: null, refusal: 'it is too long to be asked' }),
    finish: () => {},
    turnOver: () => over,
    openRequests,
    // Includes a turn that began before the run waited for an approval.
    isToolRunning: () => [...memory.items.values()].some(({ type }) => TOOL_ITEMS.has(asString(type) ?? '')),
    evidence: () => ({
      success,
      failure,
      unfinished,
      questions: openRequests().flatMap(({ question }) => question ?? []),
      lastMessage: items.lastMessage,
      complaint,
    }),
  };
}

function withParams(rule: (params: JsonObject) => Drift | undefined): Rule {
  return (event) => {
    const params = asObject(event.params);
    return params ? rule(params) : drifted('params');
  };
}

// An empty id identifies nothing.
function named(value: Json | undefined): string | undefined {
  return asString(value) || undefined;
}

// The server counts its requests from 0.
function idOf(value: Json | undefined): string | number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

interface ServerError {
  readonly message: string | undefined;
  readonly details: string | undefined;
  readonly code: string | undefined;
  readonly httpStatus: number | undefined;
}

// The kind of the error is either a string, or an object with one member of that name.
function readError(error: JsonObject | undefined): ServerError {
  const info = error?.codexErrorInfo;
  const [kind] = Object.entries(asObject(info) ?? {});
  const code = asString(info) ?? kind?.[0];
  return {
    message: asString(error?.message),
    details: asString(error?.additionalDetails),
    code,
    httpStatus: code === 'unauthorized' ? 401 : asCount(asObject(kind?.[1])?.httpStatusCode),
  };
}
