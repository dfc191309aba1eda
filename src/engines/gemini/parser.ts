// Profile gemini_json: reads both formats of the Gemini CLI. `-o stream-json` prints one event a line; `-o json` prints
// one object at the end, so lines are buffered until a stream event comes, and finish() reads them as a document.
// Success is a result with status "success" and no error event at all.
import { asCount, asObject, asString, isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import { CONFIDENCE } from '../../rasp/confidence.js';
import type { ByteRange } from '../../rasp/draft.js';
import type { RaspData } from '../../rasp/event.js';
import type { EngineFailure } from '../../run/evidence.js';
import { AskCalls } from '../ask-tool.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import { HeldLines } from '../held-lines.js';
import { MessageText } from '../message-text.js';
import { decodeLine, drifted, isBlank, readDecodedLine, undecodable, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader } from '../turn-parser.js';
import { decodeDocument, StderrTail, type FoundDocument } from './document.js';

export const GEMINI_PROFILE = 'gemini_json';

type ToolKind = RaspData['tool.call.started']['kind'];

interface OpenCall {
  readonly name: string;
  readonly kind: ToolKind;
  readonly input: Json;
}

const TOOL_KINDS = new Map<string, ToolKind>([
  ['run_shell_command', 'command'],
  ['write_file', 'file_change'],
  ['replace', 'file_change'],
  ['google_web_search', 'search'],
  ['grep_search', 'search'],
  ['glob', 'search'],
  ['invoke_agent', 'agent'],
]);

export function createGeminiReader(out: Emitter): ParserReader {
  let streaming = false;
  let damaged = false;
  let result: 'success' | 'error' | null = null;
  let sawError: string | null = null;
  let failure: EngineFailure | null = null;
  let lastMessage: string | null = null;
  // Gemini does not name its messages, so they are numbered.
  let messages = 0;
  let messageId = '';
  let lastDelta: ByteRange | null = null;
  const held = new HeldLines(out);
  const stderrTail = new StderrTail();
  const message = new MessageText();
  const calls = new Map<string, OpenCall>();
  const asks = new AskCalls();

  const rules = new Map<string, Rule>([
    ['init', init],
    ['message', messageEvent],
    ['tool_use', toolUse],
    ['tool_result', toolResult],
    ['error', errorEvent],
    ['result', resultEvent],
  ]);

  const hooks = { before: beforeEvent };

  function stdoutLine(text: string, terminated: boolean): void {
    const event = decodeLine(out, text);
    if (!streaming && event && rules.has(event.type as string)) startStreaming();
    if (streaming) readDecodedLine(out, rules, event, text, terminated, hooks);
    // Too large for a document: the buffered lines are emitted, and the following lines are read one by one.
    else if (!held.add(text, terminated)) startStreaming();
  }

  function startStreaming(): void {
    streaming = true;
    held.release(releaseLine);
  }

  function releaseLine(text: string, terminated: boolean): void {
    if (isBlank(text)) out.raw('stdout', text);
    else if (isObject(parseJson(text))) out.fallback(text, 'UNKNOWN_EVENT_TYPE', 'an object that is no event');
    else undecodable(out, text, terminated);
  }

  // The pieces of a message end where something else begins; only then is the message complete.
  function beforeEvent(event: JsonObject): void {
    if (event.type !== 'message' || event.role !== 'assistant') closeMessage();
    // Usually the init line names the session; a missing or changed init line does not lose the conversation.
    const id = event.type === 'init' ? undefined : asString(event.session_id);
    if (id && id !== out.sessionId) bind(id);
  }

  function init(event: JsonObject): Drift | undefined {
    const id = asString(event.session_id);
    if (!id) return drifted('session_id');
    bind(id, asString(event.model));
    return undefined;
  }

  function bind(id: string, model?: string, confidence?: number): void {
    if (out.sessionId === null) out.bindSession(id, model, confidence);
    else if (out.sessionId !== id) out.warn('SESSION_ID_CHANGED', `the output names ${id} too`);
    else out.emit('lifecycle.engine.progress', { phase: 'init' });
  }

  function messageEvent(event: JsonObject): Drift | undefined {
    const content = asString(event.content);
    if (content === undefined) return drifted('content');
    if (event.role === 'user') out.emit('lifecycle.engine.progress', { phase: 'prompt.echo' });
    else if (event.role !== 'assistant') return drifted('role');
    else if (event.delta === true) {
      if (message.isEmpty) nextMessage();
      message.add(content, out.emitText('agent.message.delta', content, '"content":"', messageId));
      lastDelta = out.range;
    } else {
      closeMessage();
      nextMessage();
      out.emitText('agent.message.final', content, '"content":"', messageId);
      lastMessage = content;
    }
    return undefined;
  }

  function nextMessage(): void {
    messages += 1;
    messageId = `message_${messages}`;
  }

  function closeMessage(confidence: number = CONFIDENCE.derived): void {
    if (message.isEmpty) return;
    const whole = message.drain();
    out.emitMessage(whole, messageId, confidence);
    lastMessage = whole.text;
  }

  function toolUse(event: JsonObject): Drift | undefined {
    const name = asString(event.tool_name);
    const id = asString(event.tool_id);
    if (name === undefined || id === undefined) return drifted(name === undefined ? 'tool_name' : 'tool_id');
    const kind = TOOL_KINDS.get(name) ?? (name.startsWith('mcp_') ? 'mcp' : 'other');
    const input = event.parameters ?? null;
    out.emit('tool.call.started', { name, kind, input }, id);
    calls.set(id, { name, kind, input });
    return undefined;
  }

  function toolResult(event: JsonObject): Drift | undefined {
    const id = asString(event.tool_id);
    if (id === undefined) return drifted('tool_id');
    const status = event.status === 'success' ? 'completed' : event.status === 'error' ? 'failed' : undefined;
    if (!status) return drifted('status');
    const { name, kind, input } = calls.get(id) ?? { name: 'unknown', kind: 'other' as const, input: null };
    out.emitToolCompleted(
      { name, kind, status, error: asString(asObject(event.error)?.message) },
      event.output,
      '"output":"',
      id,
    );
    const path = asString(asObject(input)?.file_path);
    if (status === 'completed' && kind === 'file_change' && path !== undefined) {
      // write_file does not report whether the file existed before.
      out.emit('artifact.file.changed', { path, kind: name === 'replace' ? 'update' : 'unknown' }, id);
    }
    // Gemini prints tool_use even for tools that do not exist, so only a successful result counts as a question.
    if (status === 'completed') asks.add(name, input, event.output);
    calls.delete(id);
    return undefined;
  }

  function errorEvent(event: JsonObject): Drift | undefined {
    const text = asString(event.message);
    // Even a warning rules out success: the loop detector prints one and ends with "success" and no answer.
    sawError = text ?? 'the engine reported an error';
    if (text === undefined) return drifted('message');
    if (event.severity === 'warning') out.emit('diagnostic.engine.warning', { message: text });
    else out.emit('diagnostic.engine.error', { message: text, terminal: false });
    return undefined;
  }

  function resultEvent(event: JsonObject): Drift | undefined {
    if (event.status !== 'success' && event.status !== 'error') return drifted('status');
    result = event.status;
    if (event.status === 'error') {
      const text = asString(asObject(event.error)?.message) ?? sawError ?? 'the engine reported an error';
      out.emit('diagnostic.engine.error', { message: text, terminal: true });
      failure = classifyFailure(text);
    }
    const stats = asObject(event.stats);
    if (stats) out.emit('agent.usage', streamUsage(stats));
    else if (event.status === 'success') out.emit('lifecycle.engine.progress', { phase: 'result' });
    return undefined;
  }

  // --- -o json ---

  function finish(): void {
    // The stream was cut off, so the message ends with the text so far.
    out.at(lastDelta);
    closeMessage(CONFIDENCE.guessed);
    out.at(null);
    if (!streaming && !held.isBlank) readDocument();
    else held.release(releaseLine);
    // A failed `-o json` leaves stdout empty and puts its object at the end of stderr.
    if (!streaming && result === null) readStderrObject();
  }

  function readDocument(): void {
    const decoded = decodeDocument(held.texts);
    if (!decoded) {
      held.release(releaseLine);
      return;
    }
    // Text before and after the object is not part of it.
    held.release(outsideLine, decoded.firstLine);
    const document = held.takeAsOne(decoded.lastLine - decoded.firstLine + 1);
    out.at(document.range);
    const mark = out.mark();
    try {
      if (decoded.how === 'drifted')
        out.fallback(document.text, 'FIELD_DRIFT', 'the object has neither session_id nor response nor error', {
          path: 'response',
        });
      else {
        documentEvents(decoded);
        for (const text of decoded.beside) {
          out.raw('stdout', text);
          out.warn('TEXT_OUTSIDE_JSON', 'text beside the JSON object, on its line');
        }
        // Every byte belongs to an event, even if the object has no content.
        if (out.mark() === mark) out.emit('lifecycle.engine.progress', { phase: 'result' });
        if (decoded.how === 'main' || decoded.how === 'surrounded') out.hit();
        else out.miss();
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      out.rewind(mark);
      out.fallback(document.text, 'NESTING_TOO_DEEP', 'the JSON is nested too deeply for an event');
    }
    held.release(outsideLine);
  }

  function outsideLine(text: string): void {
    if (isBlank(text)) out.raw('stdout', text);
    else out.fallback(text, 'TEXT_OUTSIDE_JSON', 'text around the JSON object');
  }

  function documentEvents({ body, how, response, sessionId }: FoundDocument): void {
    const salvaged = how === 'fence' || how === 'fragment';
    const confidence = salvaged
      ? CONFIDENCE.salvaged
      : how === 'surrounded'
        ? CONFIDENCE.surrounded
        : CONFIDENCE.structured;
    // An object inside the response is the model's own text: it names no session and reports no error.
    const main = isObject(body) && response === undefined ? body : {};
    const id = asString(main.session_id) ?? sessionId;
    if (id) bind(id, undefined, confidence);
    const text = asString(main.response) ?? response ?? (salvaged ? JSON.stringify(body) : undefined);
    if (text !== undefined) {
      nextMessage();
      out.emit('agent.message.final', { text }, messageId, confidence);
      lastMessage = text;
    }
    for (const warning of Array.isArray(main.warnings) ? main.warnings : []) {
      if (typeof warning === 'string') out.emit('diagnostic.engine.warning', { message: warning }, null, confidence);
    }
    if (main.error !== undefined && main.error !== null) documentError(main.error, confidence);
    // A result that was pieced together does not prove success.
    else if (asString(main.response) !== undefined && !salvaged) result = 'success';
    damaged ||= salvaged;
    const stats = asObject(main.stats);
    if (stats) out.emit('agent.usage', documentUsage(stats), null, confidence);
    if (how === 'fence') out.warn('JSON_FROM_FENCE', 'the main object could not be decoded; a fenced block was taken');
    if (how === 'fragment')
      out.warn('JSON_FROM_FRAGMENT', 'the main object could not be decoded; a fragment was taken');
  }

  function documentError(error: Json, confidence?: number): void {
    const body = asObject(error);
    const text = asString(body?.message) ?? asString(error) ?? 'the engine reported an error';
    const status = asCount(body?.code);
    out.emit(
      'diagnostic.engine.error',
      { message: text, terminal: true, http_status: status !== undefined && status >= 100 ? status : undefined },
      null,
      confidence,
    );
    result = 'error';
    // 41 is the CLI's own exit code for a missing login.
    failure = classifyFailure(text, status === 41 ? 401 : status);
  }

  function readStderrObject(): void {
    const fragment = stderrTail.findObject();
    if (!fragment) return;
    // The lines were already emitted as raw; the object has the range of the line that completes it.
    out.at(fragment.range);
    const id = asString(fragment.body.session_id);
    if (id) bind(id);
    if (fragment.body.error !== undefined) documentError(fragment.body.error);
  }

  return {
    stdoutLine,
    stderrLine: (text) => {
      stderrTail.add(text, out.range);
      return false;
    },
    longLine: (stream) => {
      if (stream === 'stdout' && !streaming) startStreaming();
    },
    finish,
    evidence: () => ({
      success: result === 'success' && sawError === null,
      failure,
      unfinished: damaged
        ? 'DOCUMENT_DAMAGED'
        : result === null
          ? 'NO_RESULT'
          : result === 'success' && sawError !== null
            ? 'ERROR_EVENT_SEEN'
            : null,
      ...asks.evidence(),
      lastMessage,
    }),
  };
}

function streamUsage(stats: JsonObject): RaspData['agent.usage'] {
  return {
    scope: 'turn',
    input_tokens: asCount(stats.input_tokens),
    cached_input_tokens: asCount(stats.cached),
    output_tokens: asCount(stats.output_tokens),
    total_tokens: asCount(stats.total_tokens),
    duration_ms: asCount(stats.duration_ms),
  };
}

// The object has one count per model.
function documentUsage(stats: JsonObject): RaspData['agent.usage'] {
  const models = Object.values(asObject(stats.models) ?? {}).map((model) => asObject(asObject(model)?.tokens) ?? {});
  const sum = (member: string) => models.reduce((total, tokens) => total + (asCount(tokens[member]) ?? 0), 0);
  return {
    scope: 'turn',
    input_tokens: sum('prompt'),
    cached_input_tokens: sum('cached'),
    output_tokens: sum('candidates'),
    reasoning_tokens: sum('thoughts'),
    total_tokens: sum('total'),
  };
}
