// Profile claude_ndjson: `claude -p --output-format stream-json --verbose`, one event per line.
// Success is the last result line with subtype "success", is_error false and terminal_reason "completed". Only an init
// line confirms the session: a result line repeats any id that was requested, even an unknown one.
import { asCount, asInteger, asObject, asString, isObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';
import type { EngineFailure } from '../../run/evidence.js';
import type { Question } from '../../run/interaction.js';
import { AskCalls } from '../ask-tool.js';
import type { Emitter } from '../emitter.js';
import { drifted, readNdjsonLine, unknownType, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader } from '../turn-parser.js';
import { describeCall } from './gate.js';
import { explainFailure } from './failure.js';

export const CLAUDE_PROFILE = 'claude_ndjson';

type ToolKind = RaspData['tool.call.started']['kind'];

interface OpenCall {
  readonly name: string;
  readonly kind: ToolKind;
  readonly input: Json;
}

interface Outcome {
  readonly success: boolean;
  readonly failure: EngineFailure | null;
  readonly unfinished: string | null;
}

const TOOL_KINDS = new Map<string, ToolKind>([
  ['Bash', 'command'],
  ['Write', 'file_change'],
  ['Edit', 'file_change'],
  ['MultiEdit', 'file_change'],
  ['NotebookEdit', 'file_change'],
  ['Task', 'agent'],
  ['Agent', 'agent'],
  ['Grep', 'search'],
  ['Glob', 'search'],
  ['WebSearch', 'search'],
  ['ToolSearch', 'search'],
]);

// Model name of messages that Claude Code writes itself.
const SYNTHETIC = '<synthetic>';

const DEFERRED = 'TOOL_DEFERRED';

const NO_RESULT: Outcome = { success: false, failure: null, unfinished: 'NO_RESULT' };

export function createClaudeReader(out: Emitter): ParserReader {
  // Of several results (a background task starts another turn), the last one decides.
  let outcome: Outcome = NO_RESULT;
  let lastMessage: string | null = null;
  let lastError: string | null = null;
  let retrying = false;
  const calls = new Map<string, OpenCall>();
  const denied = new Set<string>();
  const asks = new AskCalls();
  let cwd = '';
  // The call that a hook deferred at the end of the turn.
  let deferred: Question | null = null;

  const rules = new Map<string, Rule>([
    ['system/init', init],
    ['system/api_retry', apiRetry],
    ['system/permission_denied', permissionDenied],
    ['system/informational', informational],
    ...[
      'status',
      'compact_boundary',
      'background_tasks_changed',
      'task_started',
      'task_updated',
      'task_progress',
      'task_notification',
      'hook_started',
      'hook_response',
      'ui_invalidate',
    ].map((subtype): [string, Rule] => [`system/${subtype}`, () => progress(subtype)]),
    ['assistant', assistant],
    ['user', user],
    ['result', result],
    ['rate_limit_event', rateLimit],
    ['command_lifecycle', (event) => progress('command', asString(event.state))],
    ['attachment', (event) => progress('attachment', asString(asObject(event.attachment)?.type))],
  ]);

  const hooks = {
    nameOf: ({ type, subtype }: JsonObject): Json | undefined =>
      type === 'system' ? `system/${asString(subtype) ?? '(none)'}` : type,
  };

  function progress(phase: string, reason?: string): undefined {
    out.emit('lifecycle.engine.progress', { phase, reason });
  }

  function init(event: JsonObject): Drift | undefined {
    const id = asString(event.session_id);
    if (!id) return drifted('session_id');
    // Another turn of the same process begins.
    outcome = NO_RESULT;
    cwd = asString(event.cwd) ?? '';
    if (out.sessionId === null) out.bindSession(id, asString(event.model));
    else if (out.sessionId === id) progress('init');
    else out.warn('SESSION_ID_CHANGED', `a second init line names ${id}`);
    return undefined;
  }

  function apiRetry(event: JsonObject): Drift | undefined {
    const attempt = asCount(event.attempt);
    if (attempt === undefined) return drifted('attempt');
    lastError = asString(event.error) ?? null;
    retrying = true;
    const status = asCount(event.error_status);
    const reason = [lastError ?? 'unknown', ...(status === undefined ? [] : [`HTTP ${status}`])].join(', ');
    out.emit('diagnostic.engine.warning', {
      message: `the model service failed (${reason}); retry ${attempt} of ${asCount(event.max_retries) ?? '?'}`,
    });
    return undefined;
  }

  // The result of the call follows; only there the call ends.
  function permissionDenied(event: JsonObject): Drift | undefined {
    const id = asString(event.tool_use_id);
    if (id === undefined) return drifted('tool_use_id');
    if (calls.has(id)) denied.add(id);
    return progress('permission.denied', asString(event.tool_name));
  }

  function informational(event: JsonObject): Drift | undefined {
    const message = asString(event.content);
    if (message === undefined) return drifted('content');
    if (event.level !== 'warning' && event.level !== 'error') return progress('informational', message);
    out.emit('diagnostic.engine.warning', { message });
    return undefined;
  }

  function assistant(event: JsonObject): Drift | undefined {
    const message = asObject(event.message);
    if (!message) return drifted('message');
    if (!Array.isArray(message.content)) return drifted('message.content');
    outcome = NO_RESULT;
    if (message.model === SYNTHETIC) return synthetic(event);
    lastError = null;
    retrying = false;
    if (message.content.length === 0) return progress('message');
    const isSubagent = asString(event.parent_tool_use_id) !== undefined;
    const id = asString(event.uuid) ?? asString(message.id) ?? null;
    for (const block of message.content) {
      const drift = isObject(block) ? assistantBlock(block, id, isSubagent) : drifted('message.content[]');
      if (drift) return drift;
    }
    return undefined;
  }

  // Claude Code's own words, for instance an error of the service, which the result repeats.
  function synthetic(event: JsonObject): undefined {
    const error = asString(event.error);
    if (error !== undefined) lastError = error;
    return progress('synthetic', error);
  }

  function assistantBlock(block: JsonObject, id: string | null, isSubagent: boolean): Drift | undefined {
    switch (block.type) {
      case 'text': {
        const text = asString(block.text);
        if (text === undefined) return drifted('message.content[].text');
        // A subagent reports to the agent, not to the person.
        if (isSubagent) return progress('subagent.message');
        out.emitText('agent.message.final', text, '"text":"', id);
        lastMessage = text;
        return undefined;
      }
      case 'thinking': {
        const text = asString(block.thinking);
        if (text === undefined) return drifted('message.content[].thinking');
        if (isSubagent || text === '') return progress('thinking');
        out.emitText('agent.reasoning', text, '"thinking":"', id);
        return undefined;
      }
      case 'redacted_thinking':
        return progress('thinking');
      case 'tool_use':
        return toolUse(block);
      default:
        return unknownType(`assistant:${asString(block.type) ?? '(none)'}`);
    }
  }

  function toolUse(block: JsonObject): Drift | undefined {
    const name = asString(block.name);
    const id = asString(block.id);
    if (name === undefined || id === undefined)
      return drifted(`message.content[].${name === undefined ? 'name' : 'id'}`);
    const kind = TOOL_KINDS.get(name) ?? (name.startsWith('mcp__') ? 'mcp' : 'other');
    const input = block.input ?? null;
    out.emit('tool.call.started', { name, kind, input }, id);
    calls.set(id, { name, kind, input });
    return undefined;
  }

  function user(event: JsonObject): Drift | undefined {
    const content = asObject(event.message)?.content;
    if (typeof content === 'string') return progress('prompt.echo');
    if (!Array.isArray(content)) return drifted('message.content');
    if (content.length === 0) return progress('prompt.echo');
    for (const block of content) {
      const type = asObject(block)?.type;
      if (isObject(block) && type === 'tool_result') {
        const drift = toolResult(block, event);
        if (drift) return drift;
      } else if (type === 'text' || type === 'image' || type === 'document') progress('prompt.echo');
      else return unknownType(`user:${asString(type) ?? '(none)'}`);
    }
    return undefined;
  }

  function toolResult(block: JsonObject, event: JsonObject): Drift | undefined {
    const id = asString(block.tool_use_id);
    if (id === undefined) return drifted('message.content[].tool_use_id');
    // The call of a deferred tool was printed by an earlier process.
    const { name, kind, input } = calls.get(id) ?? { name: 'unknown', kind: 'other' as const, input: null };
    const failed = block.is_error === true;
    const isDenied = failed && (denied.has(id) || wasRejected(event, id));
    const status = isDenied ? 'declined' : failed ? 'failed' : 'completed';
    const text = asString(block.content);
    out.emitToolCompleted(
      { name, kind, status, exit_code: kind === 'command' ? exitCodeOf(text, failed, isDenied) : undefined },
      block.content,
      '"content":"',
      id,
    );
    if (status === 'completed' && kind === 'file_change') fileChanged(asObject(event.tool_use_result), input, id);
    if (status === 'completed') asks.add(name, input, block.content);
    calls.delete(id);
    denied.delete(id);
    return undefined;
  }

  function fileChanged(change: JsonObject | undefined, input: Json, id: string): void {
    const fields = asObject(input);
    const path = asString(change?.filePath) ?? asString(fields?.file_path) ?? asString(fields?.notebook_path);
    if (path === undefined) return;
    const kind = change?.type === 'create' ? 'add' : change ? 'update' : 'unknown';
    out.emit('artifact.file.changed', { path, kind }, id);
  }

  function rateLimit(event: JsonObject): Drift | undefined {
    const info = asObject(event.rate_limit_info);
    const status = asString(info?.status);
    if (!info || status === undefined) return drifted('rate_limit_info.status');
    if (status === 'allowed') return progress('rate_limit', status);
    const type = asString(info.rateLimitType) ?? 'unknown';
    const at = timeOf(info.resetsAt);
    out.emit('diagnostic.engine.warning', {
      message: `usage limit ${type}: ${status}${at === undefined ? '' : `, resets at ${at}`}`,
    });
    return undefined;
  }

  function result(event: JsonObject): Drift | undefined {
    const subtype = asString(event.subtype);
    if (subtype === undefined) return drifted('subtype');
    if (typeof event.is_error !== 'boolean') return drifted('is_error');
    const id = asString(event.session_id);
    // A call that is deferred again comes from the stored session; there is no init line then.
    if (out.sessionId === null && id !== undefined && endOf(event) === 'tool_deferred') out.bindSession(id);
    if (out.sessionId !== null && id !== undefined && id !== out.sessionId)
      out.warn('SESSION_ID_CHANGED', `the result names ${id}`);
    outcome = judge(event, subtype);
    deferred = outcome.unfinished === DEFERRED ? readDeferred(event.deferred_tool_use, cwd) : null;
    // With a JSON schema there may be no message.
    if (outcome.success) lastMessage ??= asString(event.result) ?? null;
    const usage = usageOf(event);
    if (usage) out.emit('agent.usage', usage);
    const refused = Array.isArray(event.permission_denials) ? event.permission_denials.length : 0;
    if (refused > 0)
      out.emit('diagnostic.engine.warning', {
        message: `${refused} tool call${refused === 1 ? ' was' : 's were'} not permitted: ${namesOf(event)}`,
      });
    progress('result', endOf(event) || subtype);
    return undefined;
  }

  function judge(event: JsonObject, subtype: string): Outcome {
    const reason = endOf(event);
    // Somebody else than Parley interrupted it.
    if (reason.startsWith('aborted')) return { success: false, failure: null, unfinished: 'TURN_INTERRUPTED' };
    if (event.is_error === true || subtype !== 'success') {
      const failure = explainFailure(event, { lastError, retrying });
      out.emit('diagnostic.engine.error', {
        message: failure.message,
        terminal: true,
        code: asString(event.api_error) ?? asString(event.api_error_type) ?? subtype,
        http_status: asCount(event.api_error_status),
      });
      return { success: false, failure, unfinished: null };
    }
    if (reason === 'completed') return { success: true, failure: null, unfinished: null };
    return { success: false, failure: null, unfinished: reasonCode(reason) };
  }

  return {
    stdoutLine: (text, terminated) => readNdjsonLine(out, rules, text, terminated, hooks),
    finish: () => {},
    evidence: () => {
      const asked = asks.evidence();
      const waiting = deferred !== null && outcome.unfinished === DEFERRED ? [deferred] : [];
      return { ...outcome, ...asked, questions: [...asked.questions, ...waiting], lastMessage };
    },
  };
}

// Whether a permission rule, a mode or a hook refused the call.
function wasRejected(event: JsonObject, id: string): boolean {
  if (!Array.isArray(event.tool_result_meta)) return false;
  const meta = event.tool_result_meta.map(asObject).find((each) => each?.id === id);
  return asObject(meta?.permission_decision)?.decision === 'reject';
}

// The text of a failed command begins with its exit code.
function exitCodeOf(text: string | undefined, failed: boolean, isDenied: boolean): number | undefined {
  if (isDenied) return undefined;
  return failed ? asInteger(Number(/^Exit code (\d{1,3})\b/.exec(text ?? '')?.[1])) : 0;
}

function timeOf(seconds: Json | undefined): string | undefined {
  const count = asCount(seconds);
  const date = count === undefined ? undefined : new Date(count * 1000);
  return date && !Number.isNaN(date.getTime()) ? date.toISOString() : undefined;
}

function namesOf(event: JsonObject): string {
  const denials = Array.isArray(event.permission_denials) ? event.permission_denials : [];
  const names = denials.map((denial) => asString(asObject(denial)?.tool_name) ?? 'unknown');
  return [...new Set(names)].slice(0, 20).join(', ').slice(0, 500);
}

// A result without an init line names only why it stopped.
function endOf(event: JsonObject): string {
  const stop = event.stop_reason === 'tool_deferred' && event.is_error === false ? event.stop_reason : '';
  return asString(event.terminal_reason) ?? stop;
}

// Null: the call is not described, so nobody can decide about it.
function readDeferred(call: Json | undefined, cwd: string): Question | null {
  const { name, input } = asObject(call) ?? {};
  return typeof name === 'string' && isObject(input) ? describeCall({ tool: name, input, cwd }) : null;
}

// TOOL_DEFERRED: a hook postponed a call and the process ended.
function reasonCode(reason: string): string {
  const word = reason
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .slice(0, 40);
  return word === '' ? 'NO_TERMINAL_REASON' : word;
}

// Claude Code counts the models' tokens and the cost over the whole session, including resumed processes; a fork starts
// with the figures of its source. `usage` covers one turn and omits calls of a turn that was cut short.
function usageOf(event: JsonObject): RaspData['agent.usage'] | undefined {
  const models = Object.values(asObject(event.modelUsage) ?? {}).flatMap((model) => (isObject(model) ? [model] : []));
  if (models.length === 0) return undefined;
  const sum = (member: string): number => models.reduce((total, model) => total + (asCount(model[member]) ?? 0), 0);
  const cached = sum('cacheReadInputTokens');
  const input = sum('inputTokens') + cached + sum('cacheCreationInputTokens');
  const output = sum('outputTokens');
  const cost = event.total_cost_usd;
  return {
    scope: 'thread',
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_tokens: sum('thinkingTokens'),
    total_tokens: input + output,
    cost_usd: typeof cost === 'number' && Number.isFinite(cost) ? cost : undefined,
  };
}
