// Profile opencode_ndjson: `opencode run --format json`, one event a line, the session id on each.
// There is no closing event: success is a last step_finish with reason "stop" and no error at all.
import { asCount, asInteger, asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';
import type { EngineFailure } from '../../run/evidence.js';
import { AskCalls, isAskTool } from '../ask-tool.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import { drifted, readNdjsonLine, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader } from '../turn-parser.js';

export const OPENCODE_PROFILE = 'opencode_ndjson';

type ToolKind = RaspData['tool.call.started']['kind'];

const TOOL_KINDS = new Map<string, ToolKind>([
  ['bash', 'command'],
  ['write', 'file_change'],
  ['edit', 'file_change'],
  ['multiedit', 'file_change'],
  ['patch', 'file_change'],
  ['apply_patch', 'file_change'],
  ['task', 'agent'],
  ['grep', 'search'],
  ['glob', 'search'],
  ['websearch', 'search'],
]);

const MAX_EMPTY_STEPS = 20;

export function createOpencodeReader(out: Emitter): ParserReader {
  let lastReason: string | null = null;
  let failure: EngineFailure | null = null;
  let lastMessage: string | null = null;
  // Consecutive steps without text or call: OpenCode repeats a request forever if a service returns nonsense.
  let emptySteps = 0;
  const asks = new AskCalls();
  let stepBrought = false;

  const rules = new Map<string, Rule>([
    ['step_start', stepStart],
    ['text', text],
    ['reasoning', reasoning],
    ['tool_use', toolUse],
    ['step_finish', stepFinish],
    ['error', errorEvent],
  ]);

  const hooks = { before: bind };

  function bind(event: JsonObject): void {
    const id = asString(event.sessionID);
    if (!id || id === out.sessionId) return;
    if (out.sessionId === null) out.bindSession(id);
    else out.warn('SESSION_ID_CHANGED', `a line names ${id}`);
  }

  function stepStart(event: JsonObject): Drift | undefined {
    if (!asObject(event.part)) return drifted('part');
    lastReason = null;
    out.emit('lifecycle.engine.progress', { phase: 'step.started' });
    return undefined;
  }

  function text(event: JsonObject): Drift | undefined {
    const part = asObject(event.part);
    const body = asString(part?.text);
    if (body === undefined) return drifted('part.text');
    out.emitText('agent.message.final', body, '"text":"', asString(part?.id) ?? null);
    lastMessage = body;
    if (body !== '') stepBrought = true;
    return undefined;
  }

  function reasoning(event: JsonObject): Drift | undefined {
    const part = asObject(event.part);
    const body = asString(part?.text);
    if (body === undefined) return drifted('part.text');
    out.emitText('agent.reasoning', body, '"text":"', asString(part?.id) ?? null);
    if (body !== '') stepBrought = true;
    return undefined;
  }

  // Printed when the call has ended, so one line contains both its start and its end.
  function toolUse(event: JsonObject): Drift | undefined {
    const part = asObject(event.part);
    const name = asString(part?.tool);
    const state = asObject(part?.state);
    if (name === undefined || !state) return drifted(name === undefined ? 'part.tool' : 'part.state');
    const status = state.status === 'completed' ? 'completed' : state.status === 'error' ? 'failed' : undefined;
    if (!status) return drifted('part.state.status');
    stepBrought = true;
    const id = asString(part?.callID) ?? null;
    const kind = TOOL_KINDS.get(name) ?? (isAskTool(name) ? 'mcp' : 'other');
    const error = asString(state.error);
    out.emit('tool.call.started', { name, kind, input: state.input ?? null }, id);
    out.emitToolCompleted(
      {
        name,
        kind,
        // A call that the user's rules refused is not a failure of the tool.
        status: error?.includes('rejected permission') ? 'declined' : status,
        error,
        exit_code: asInteger(asObject(state.metadata)?.exit),
        duration_ms: durationOf(state.time),
      },
      state.output,
      '"output":"',
      id,
    );
    if (status === 'completed' && kind === 'file_change') fileChanged(state, id);
    if (status === 'completed') asks.add(name, state.input, state.output);
    return undefined;
  }

  function fileChanged(state: JsonObject, id: string | null): void {
    const metadata = asObject(state.metadata);
    const path = asString(metadata?.filepath) ?? asString(asObject(state.input)?.filePath);
    if (path === undefined) return;
    const edited = metadata?.exists === true || asObject(state.input)?.oldString !== undefined;
    out.emit(
      'artifact.file.changed',
      { path, kind: metadata?.exists === false ? 'add' : edited ? 'update' : 'unknown' },
      id,
    );
  }

  function stepFinish(event: JsonObject): Drift | undefined {
    const part = asObject(event.part);
    const reason = asString(part?.reason);
    if (reason === undefined) return drifted('part.reason');
    lastReason = reason;
    emptySteps = reason === 'unknown' && !stepBrought ? emptySteps + 1 : 0;
    stepBrought = false;
    out.emit('lifecycle.engine.progress', { phase: 'step.finished', reason });
    const tokens = asObject(part?.tokens);
    if (tokens) out.emit('agent.usage', usageOf(tokens, part?.cost));
    return undefined;
  }

  function errorEvent(event: JsonObject): Drift | undefined {
    const error = asObject(event.error);
    const data = asObject(error?.data);
    const name = asString(error?.name);
    const status = asCount(data?.statusCode);
    const message = asString(data?.message) ?? asString(error?.message) ?? name;
    failure ??= classifyFailure(message ?? 'the engine reported an error', name === 'ProviderAuthError' ? 401 : status);
    if (message === undefined) return drifted('error.data.message');
    out.emit('diagnostic.engine.error', {
      message,
      terminal: true,
      code: name,
      http_status: status,
      retryable: typeof data?.isRetryable === 'boolean' ? data.isRetryable : undefined,
    });
    return undefined;
  }

  return {
    stdoutLine: (line, terminated) => readNdjsonLine(out, rules, line, terminated, hooks),
    finish: () => {},
    runaway: () => emptySteps >= MAX_EMPTY_STEPS,
    evidence: () => ({
      success: lastReason === 'stop' && failure === null,
      failure,
      // A rejected permission ends with "tool-calls", a truncated answer with "length": both exit with 0.
      unfinished:
        lastReason === null
          ? 'NO_STEP_FINISH'
          : lastReason === 'stop'
            ? null
            : `LAST_STEP_${lastReason
                .toUpperCase()
                .replace(/[^A-Z0-9]+/g, '_')
                .slice(0, 40)}`,
      ...asks.evidence(),
      lastMessage,
    }),
  };
}

function usageOf(tokens: JsonObject, cost: Json | undefined): RaspData['agent.usage'] {
  return {
    scope: 'step',
    input_tokens: asCount(tokens.input),
    cached_input_tokens: asCount(asObject(tokens.cache)?.read),
    output_tokens: asCount(tokens.output),
    reasoning_tokens: asCount(tokens.reasoning),
    total_tokens: asCount(tokens.total),
    cost_usd: typeof cost === 'number' && Number.isFinite(cost) ? cost : undefined,
  };
}

function durationOf(time: Json | undefined): number | undefined {
  const start = asObject(time)?.start;
  const end = asObject(time)?.end;
  return typeof start === 'number' && typeof end === 'number' ? asCount(Math.round(end - start)) : undefined;
}
