// Converts the items of a turn: the agent's messages, reasoning, plans and tool calls. Keeps the body of an item from
// its start to its end, because a request for an approval contains only its id.
import { asCount, asInteger, asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';
import type { Emitter } from '../emitter.js';
import { drifted, unknownType, type Drift } from '../ndjson.js';
import type { ReaderMemory } from '../turn-parser.js';
import { itemKey, readChanges, rememberChanges, rememberItem } from './file-changes.js';
import { SILENT_ITEMS } from './known-names.js';

type Phase = 'started' | 'completed';
type ItemRule = (phase: Phase, body: JsonObject, id: string) => Drift | undefined;
type ToolKind = RaspData['tool.call.started']['kind'];
type ToolStatus = RaspData['tool.call.completed']['status'];

interface ToolCall {
  readonly name: string;
  readonly kind: ToolKind;
  readonly input: Json;
  readonly output: Json | undefined;
}

export class ItemReader {
  readonly #out: Emitter;
  readonly #memory: ReaderMemory;
  #lastMessage: string | null = null;
  readonly #rules: ReadonlyMap<string, ItemRule>;

  constructor(out: Emitter, memory: ReaderMemory) {
    this.#out = out;
    this.#memory = memory;
    this.#rules = new Map<string, ItemRule>([
      ...SILENT_ITEMS.map((type): [string, ItemRule] => [type, (phase) => this.#progress(phase, type)]),
      ['agentMessage', (phase, body, id) => this.#agentMessage(phase, body, id)],
      ['reasoning', (phase, body, id) => this.#reasoning(phase, body, id)],
      ['plan', (phase, body, id) => this.#planText(phase, body, id)],
      ['commandExecution', (phase, body, id) => this.#command(phase, body, id)],
      ['fileChange', (phase, body, id) => this.#fileChange(phase, body, id)],
      ['mcpToolCall', (phase, body, id) => this.#mcpToolCall(phase, body, id)],
      [
        'dynamicToolCall',
        (phase, body, id) => this.#namedCall(phase, body, id, 'other', body.arguments ?? null, body.contentItems),
      ],
      [
        'collabAgentToolCall',
        (phase, body, id) => this.#namedCall(phase, body, id, 'agent', inputOf(body), body.agentsStates),
      ],
      [
        'webSearch',
        (phase, body, id) =>
          this.#toolCall(phase, body, id, {
            name: 'web_search',
            kind: 'search',
            input: { query: body.query ?? null },
            output: body.results,
          }),
      ],
    ]);
  }

  // Only the agent's last message counts.
  forgetMessage(): void {
    this.#lastMessage = null;
  }

  get lastMessage(): string | null {
    return this.#lastMessage;
  }

  item(phase: Phase, params: JsonObject): Drift | undefined {
    const body = asObject(params.item);
    if (!body) return drifted('item');
    const id = asString(body.id);
    if (id === undefined) return drifted('item.id');
    const key = itemKey(params.threadId, id);
    if (phase === 'started') rememberItem(this.#memory.items, key, body);
    else this.#memory.items.delete(key);
    const type = asString(body.type);
    if (type === undefined) return drifted('item.type');
    const rule = this.#rules.get(type);
    return rule ? rule(phase, body, id) : unknownType(`item/${phase}:${type}`);
  }

  messageDelta({ itemId, delta }: JsonObject): Drift | undefined {
    if (typeof itemId !== 'string') return drifted('itemId');
    if (typeof delta !== 'string') return drifted('delta');
    this.#out.emitText('agent.message.delta', delta, '"delta":"', itemId);
    return undefined;
  }

  outputDelta({ itemId, delta }: JsonObject): Drift | undefined {
    if (typeof itemId !== 'string') return drifted('itemId');
    if (typeof delta !== 'string') return drifted('delta');
    this.#out.emit('tool.call.updated', { name: 'shell', kind: 'command', output: delta }, itemId);
    return undefined;
  }

  // The patch grew after its item had started: the person who approves it must see its current state.
  patchUpdated({ threadId, itemId, changes }: JsonObject): Drift | undefined {
    if (typeof itemId !== 'string') return drifted('itemId');
    rememberChanges(this.#memory.items, itemKey(threadId, itemId), changes);
    if (!readChanges(changes)) return drifted('changes');
    this.#out.emit('tool.call.updated', { name: 'apply_patch', kind: 'file_change' }, itemId);
    return undefined;
  }

  plan({ plan }: JsonObject): Drift | undefined {
    if (!Array.isArray(plan)) return drifted('plan');
    const steps = [];
    for (const entry of plan) {
      const text = asString(asObject(entry)?.step);
      if (text === undefined) return drifted('plan[].step');
      steps.push({ text, done: asObject(entry)?.status === 'completed' });
    }
    this.#out.emit('agent.plan', { items: steps });
    return undefined;
  }

  #progress(phase: Phase, type: string): undefined {
    this.#out.emit('lifecycle.engine.progress', { phase: `item/${phase}: ${type}` });
  }

  #agentMessage(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const text = asString(body.text);
    if (text === undefined) return drifted('item.text');
    if (phase !== 'completed') return this.#progress(phase, 'agentMessage');
    this.#out.emitText('agent.message.final', text, '"text":"', id);
    this.#lastMessage = text;
    return undefined;
  }

  #reasoning(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const summary = textsOf(body.summary);
    const content = textsOf(body.content ?? []);
    if (!summary || !content) return drifted(summary ? 'item.content' : 'item.summary');
    const text = summary.join('\n\n') || content.join('\n\n');
    if (phase !== 'completed' || text === '') return this.#progress(phase, 'reasoning');
    this.#out.emitText('agent.reasoning', text, '"summary":["', id);
    return undefined;
  }

  // A plan that is written as text is one step.
  #planText(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const text = asString(body.text);
    if (text === undefined) return drifted('item.text');
    if (phase !== 'completed' || text === '') return this.#progress(phase, 'plan');
    this.#out.emit('agent.plan', { items: [{ text, done: false }] }, id);
    return undefined;
  }

  #command(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const command = asString(body.command);
    if (command === undefined) return drifted('item.command');
    if (phase === 'started')
      this.#out.emit(
        'tool.call.started',
        {
          name: 'shell',
          kind: 'command',
          input: { command, ...(typeof body.cwd === 'string' ? { cwd: body.cwd } : {}) },
        },
        id,
      );
    else {
      const status = toolStatus(body.status);
      if (!status) return drifted('item.status');
      const call = {
        name: 'shell',
        kind: 'command',
        status,
        exit_code: asInteger(body.exitCode),
        duration_ms: asCount(body.durationMs),
      } as const;
      this.#out.emitToolCompleted(call, asString(body.aggregatedOutput), '"aggregatedOutput":"', id);
    }
    return undefined;
  }

  #fileChange(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const changes = readChanges(body.changes);
    if (!changes) return drifted('item.changes');
    const drift = this.#toolCall(phase, body, id, {
      name: 'apply_patch',
      kind: 'file_change',
      input: { changes: body.changes ?? null },
      output: undefined,
    });
    if (drift || phase !== 'completed' || body.status !== 'completed') return drift;
    for (const { path, kind } of changes) this.#out.emit('artifact.file.changed', { path, kind }, id);
    return undefined;
  }

  #mcpToolCall(phase: Phase, body: JsonObject, id: string): Drift | undefined {
    const server = asString(body.server);
    const tool = asString(body.tool);
    if (server === undefined || tool === undefined) return drifted(server === undefined ? 'item.server' : 'item.tool');
    return this.#toolCall(phase, body, id, {
      name: `${server}.${tool}`,
      kind: 'mcp',
      input: body.arguments ?? null,
      output: body.result,
    });
  }

  #namedCall(
    phase: Phase,
    body: JsonObject,
    id: string,
    kind: ToolKind,
    input: Json,
    output: Json | undefined,
  ): Drift | undefined {
    const name = asString(body.tool);
    return name === undefined ? drifted('item.tool') : this.#toolCall(phase, body, id, { name, kind, input, output });
  }

  #toolCall(phase: Phase, body: JsonObject, id: string, { name, kind, input, output }: ToolCall): Drift | undefined {
    if (phase === 'started') this.#out.emit('tool.call.started', { name, kind, input }, id);
    else {
      // Searches have no status of their own: they are reported when they have finished.
      const status = body.status === undefined ? 'completed' : toolStatus(body.status);
      if (!status) return drifted('item.status');
      const error = asString(asObject(body.error)?.message);
      this.#out.emit(
        'tool.call.completed',
        { name, kind, status, error, duration_ms: asCount(body.durationMs), output: output ?? undefined },
        id,
      );
    }
    return undefined;
  }
}

// Only a call of another agent can be interrupted.
function toolStatus(value: Json | undefined): ToolStatus | undefined {
  if (value === 'interrupted') return 'failed';
  return value === 'completed' || value === 'failed' || value === 'declined' ? value : undefined;
}

function textsOf(value: Json | undefined): string[] | undefined {
  return Array.isArray(value) && value.every((text) => typeof text === 'string') ? value : undefined;
}

// The input of another agent: the call without the members that describe its outcome.
function inputOf(body: JsonObject): JsonObject {
  const {
    id: _id,
    type: _type,
    status: _status,
    agentsStates: _states,
    startedAtMs: _started,
    completedAtMs: _completed,
    ...input
  } = body;
  return input;
}
