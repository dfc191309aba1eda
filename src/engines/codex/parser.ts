// Profile codex_ndjson: `codex exec --json`, one event a line on stdout; stderr is noise for people.
// Success is turn.completed. `error` lines are not terminal (retries print them), `error` items are warnings.
import { asCount, asInteger, asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';
import type { EngineFailure } from '../../run/evidence.js';
import { AskCalls } from '../ask-tool.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import { drifted, readNdjsonLine, unknownType, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader } from '../turn-parser.js';

export const CODEX_PROFILE = 'codex_ndjson';

type Phase = 'started' | 'updated' | 'completed';
type ItemRule = (phase: Phase, item: JsonObject, id: string) => Drift | undefined;
type ToolStatus = RaspData['tool.call.completed']['status'];
type FileKind = RaspData['artifact.file.changed']['kind'];

export function createCodexReader(out: Emitter): ParserReader {
  let completed = false;
  let failure: EngineFailure | null = null;
  let lastMessage: string | null = null;
  const asks = new AskCalls();

  const rules = new Map<string, Rule>([
    ['thread.started', threadStarted],
    ['turn.started', () => progress('turn.started')],
    ['turn.completed', turnCompleted],
    ['turn.failed', turnFailed],
    ['error', errorLine],
    ['item.started', (event) => item('started', event)],
    ['item.updated', (event) => item('updated', event)],
    ['item.completed', (event) => item('completed', event)],
  ]);

  const items = new Map<string, ItemRule>([
    ['agent_message', agentMessage],
    ['reasoning', reasoning],
    ['command_execution', command],
    ['file_change', fileChange],
    ['mcp_tool_call', mcpToolCall],
    [
      'collab_tool_call',
      (phase, body, id) => toolCall(phase, body, id, asString(body.tool) ?? 'collab', 'agent', without(body)),
    ],
    [
      'web_search',
      (phase, body, id) => toolCall(phase, body, id, 'web_search', 'search', { query: body.query ?? null }),
    ],
    ['todo_list', todoList],
    ['error', warningItem],
  ]);

  function progress(phase: string): undefined {
    out.emit('lifecycle.engine.progress', { phase });
  }

  function threadStarted(event: JsonObject): Drift | undefined {
    const id = asString(event.thread_id);
    if (!id) return drifted('thread_id');
    if (out.sessionId === null) out.bindSession(id);
    else if (out.sessionId === id) progress('thread.started');
    else out.warn('SESSION_ID_CHANGED', `a second thread.started names ${id}`);
    return undefined;
  }

  function turnCompleted(event: JsonObject): Drift | undefined {
    completed = true;
    const usage = asObject(event.usage);
    if (!usage) return drifted('usage');
    out.emit('agent.usage', {
      // Codex counts over the whole thread, including forks and resumes.
      scope: 'thread',
      input_tokens: asCount(usage.input_tokens),
      cached_input_tokens: asCount(usage.cached_input_tokens),
      output_tokens: asCount(usage.output_tokens),
      reasoning_tokens: asCount(usage.reasoning_output_tokens),
    });
    return undefined;
  }

  function turnFailed(event: JsonObject): Drift | undefined {
    const message = asString(asObject(event.error)?.message);
    // Even in an unknown form it means that the turn failed.
    failure = classifyFailure(message ?? 'the turn failed');
    if (message === undefined) return drifted('error.message');
    out.emit('diagnostic.engine.error', { message, terminal: true });
    return undefined;
  }

  function errorLine(event: JsonObject): Drift | undefined {
    const message = asString(event.message);
    if (message === undefined) return drifted('message');
    if (message.startsWith('Reconnecting')) out.emit('diagnostic.engine.warning', { message });
    else out.emit('diagnostic.engine.error', { message, terminal: false });
    return undefined;
  }

  function item(phase: Phase, event: JsonObject): Drift | undefined {
    const body = asObject(event.item);
    if (!body) return drifted('item');
    const id = asString(body.id);
    if (id === undefined) return drifted('item.id');
    const type = asString(body.type);
    if (type === undefined) return drifted('item.type');
    const rule = items.get(type);
    return rule ? rule(phase, body, id) : unknownType(`item.${phase}:${type}`);
  }

  function agentMessage(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const text = asString(body.text);
    if (text === undefined) return drifted('item.text');
    if (phase !== 'completed') return progress(`message.${phase}`);
    out.emitText('agent.message.final', text, '"text":"', id);
    lastMessage = text;
    return undefined;
  }

  function reasoning(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const text = asString(body.text);
    if (text === undefined) return drifted('item.text');
    if (phase !== 'completed') return progress(`reasoning.${phase}`);
    out.emitText('agent.reasoning', text, '"text":"', id);
    return undefined;
  }

  function command(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const line = asString(body.command);
    if (line === undefined) return drifted('item.command');
    const output = asString(body.aggregated_output);
    if (phase === 'started')
      out.emit('tool.call.started', { name: 'shell', kind: 'command', input: { command: line } }, id);
    else if (phase === 'updated') out.emit('tool.call.updated', { name: 'shell', kind: 'command', output }, id);
    else {
      const status = toolStatus(body.status);
      if (!status) return drifted('item.status');
      out.emitToolCompleted(
        { name: 'shell', kind: 'command', status, exit_code: asInteger(body.exit_code) },
        output,
        '"aggregated_output":"',
        id,
      );
    }
    return undefined;
  }

  function fileChange(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const changes = parseChanges(body.changes);
    if (!changes) return drifted('item.changes');
    if (phase !== 'completed')
      return toolCall(phase, body, id, 'apply_patch', 'file_change', { changes: body.changes ?? null });
    const status = toolStatus(body.status);
    if (!status) return drifted('item.status');
    out.emit('tool.call.completed', { name: 'apply_patch', kind: 'file_change', status }, id);
    if (status === 'completed') for (const change of changes) out.emit('artifact.file.changed', change, id);
    return undefined;
  }

  function mcpToolCall(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const server = asString(body.server);
    const tool = asString(body.tool);
    if (server === undefined || tool === undefined) return drifted(server === undefined ? 'item.server' : 'item.tool');
    const drift = toolCall(phase, body, id, `${server}.${tool}`, 'mcp', body.arguments ?? null);
    // A failed call has asked no question.
    if (!drift && phase === 'completed' && body.status === 'completed')
      asks.add(`${server}.${tool}`, body.arguments, body.result);
    return drift;
  }

  function toolCall(
    phase: Phase,
    body: JsonObject,
    id: string,
    name: string,
    kind: RaspData['tool.call.started']['kind'],
    input: Json,
  ): Drift | undefined {
    if (phase === 'started') out.emit('tool.call.started', { name, kind, input }, id);
    else if (phase === 'updated') out.emit('tool.call.updated', { name, kind }, id);
    else {
      // Searches have no status of their own: they are reported when they have finished.
      const status = body.status === undefined ? 'completed' : toolStatus(body.status);
      if (!status) return drifted('item.status');
      out.emit(
        'tool.call.completed',
        { name, kind, status, error: asString(asObject(body.error)?.message), output: body.result ?? undefined },
        id,
      );
    }
    return undefined;
  }

  function todoList(_phase: Phase, body: JsonObject, id: string): Drift | undefined {
    if (!Array.isArray(body.items)) return drifted('item.items');
    const steps = [];
    for (const entry of body.items) {
      const text = asString(asObject(entry)?.text);
      if (text === undefined) return drifted('item.items[].text');
      steps.push({ text, done: asObject(entry)?.completed === true });
    }
    out.emit('agent.plan', { items: steps }, id);
    return undefined;
  }

  function warningItem(_phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const message = asString(body.message);
    if (message === undefined) return drifted('item.message');
    out.emit('diagnostic.engine.warning', { message }, id);
    return undefined;
  }

  return {
    stdoutLine: (text, terminated) => readNdjsonLine(out, rules, text, terminated),
    finish: () => {},
    evidence: () => ({
      success: completed && failure === null,
      failure,
      unfinished: completed ? null : 'NO_TURN_COMPLETED',
      ...asks.evidence(),
      lastMessage,
    }),
  };
}

function toolStatus(value: Json | undefined): ToolStatus | undefined {
  return value === 'completed' || value === 'failed' || value === 'declined' ? value : undefined;
}

function parseChanges(value: Json | undefined): { path: string; kind: FileKind }[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const changes: { path: string; kind: FileKind }[] = [];
  for (const entry of value) {
    const path = asString(asObject(entry)?.path);
    if (path === undefined) return undefined;
    const kind = asObject(entry)?.kind;
    changes.push({ path, kind: kind === 'add' || kind === 'update' || kind === 'delete' ? kind : 'unknown' });
  }
  return changes;
}

// The input of a call: its item without the members that describe its outcome.
function without(body: JsonObject): JsonObject {
  const { id: _id, type: _type, status: _status, result: _result, error: _error, ...input } = body;
  return input;
}
