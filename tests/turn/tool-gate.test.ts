// The gate of one turn, over real HTTP: who may ask, which calls wait, and that a decision is stored before it is used.
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { actionDigest } from '../../src/engines/action-digest.js';
import { claudeGate } from '../../src/engines/claude/gate.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { InteractionRecord } from '../../src/store/store.js';
import { ToolGate, withoutProxy } from '../../src/turn/tool-gate.js';
import { CommandBench } from '../support/command-bench.js';
import { sceneOf, typesOf } from '../support/turn-scene.js';

const CWD = '/work';
const TOKEN = 'token';

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const digestOf = (command: string) => actionDigest({ kind: 'command', command, cwd: CWD }, 'read-only');

function answered(command: string, response: Json): InteractionRecord {
  return {
    interaction_id: 'int_1',
    question: { kind: 'approval', prompt: 'May I?', digest: digestOf(command) },
    resolution: { response, actor: { kind: 'user', name: 'ann' } },
  } as unknown as InteractionRecord;
}

async function open(decision: InteractionRecord | null = null, fails = false) {
  const run = await bench.running();
  const { context } = sceneOf(bench, run, { answered: decision });
  if (fails) Object.assign(context.writer, { flush: () => Promise.reject(new Error('the disk is full')) });
  const gate = await ToolGate.open(claudeGate, 'read-only', TOKEN);
  onTestFinished(() => gate.close());
  gate.attach(context);
  const post = (body: string, token = TOKEN) =>
    fetch(gate.url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body });
  let calls = 0;
  // The decision, or undefined if Claude Code decides.
  const ask = async (tool: string, input: JsonObject, rest: JsonObject = {}): Promise<string | undefined> => {
    calls += 1;
    const call = {
      hook_event_name: 'PreToolUse',
      tool_name: tool,
      tool_input: input,
      tool_use_id: `toolu_${calls}`,
      cwd: CWD,
      ...rest,
    };
    const response = await post(JSON.stringify(call));
    if (response.status !== 200) return String(response.status);
    const reply = (await response.json()) as { hookSpecificOutput?: { permissionDecision: string } };
    return reply.hookSpecificOutput?.permissionDecision;
  };
  const bash = (command: string, rest?: JsonObject) => ask('Bash', { command }, rest);
  const applied = async () => {
    await context.writer.flush();
    const events = await bench.eventsOf(run.run_id);
    return typesOf(events).filter((type) => type === 'interaction.approval.applied').length;
  };
  return { gate, post, ask, bash, applied };
}

describe('requests', () => {
  test('without the token, and ones that are no tool call, decide nothing', async () => {
    const { post, bash } = await open();
    expect((await post('{}', 'other')).status).toBe(401);
    expect((await post('{}', 'tokem')).status).toBe(401);
    for (const body of ['', 'no JSON', '[]', '{"hook_event_name":"Stop"}'])
      expect(await (await post(body)).json()).toEqual({});
    expect(await bash('make')).toBe('defer');
  });

  test('that are too large are refused, so Claude Code decides', async () => {
    const { ask } = await open();
    expect(await ask('Write', { file_path: 'a', content: 'x'.repeat(3 * 1024 * 1024) })).toBe('413');
  });
});

describe('calls', () => {
  test('that need a person: the first is deferred, even when asked again, and further ones are denied', async () => {
    const { bash } = await open();
    expect(await bash('ls')).toBeUndefined();
    expect(await bash('make', { tool_use_id: 'first' })).toBe('defer');
    expect(await bash('make', { tool_use_id: 'second' })).toBe('deny');
    expect(await bash('make', { tool_use_id: 'first' })).toBe('defer');
    expect(await bash('ls')).toBeUndefined();
  });

  test('that an earlier turn left behind do not block those of the new prompt', async () => {
    const { bash } = await open();
    expect(await bash('make', { prompt_id: 'old' })).toBe('defer');
    expect(await bash('ls', { prompt_id: 'other', agent_id: 'a' })).toBeUndefined();
    expect(await bash('make all', { prompt_id: 'old' })).toBe('deny');
    expect(await bash('make all', { prompt_id: 'new' })).toBe('defer');
    expect(await bash('make clean', { prompt_id: 'new' })).toBe('deny');
  });

  test('at the same time: exactly one is deferred', async () => {
    const { bash } = await open();
    const decisions = await Promise.all(Array.from({ length: 20 }, () => bash('make')));
    expect(decisions.toSorted()).toEqual(['defer', ...Array.from({ length: 19 }, () => 'deny')].toSorted());
  });

  test('of a subagent are denied if they need a person', async () => {
    const { bash } = await open();
    expect(await bash('make', { agent_id: 'a' })).toBe('deny');
    expect(await bash('ls', { agent_id: 'a' })).toBeUndefined();
    expect(await bash('make')).toBe('defer');
  });

  test('and questions never wait together', async () => {
    const one = await open();
    expect(await one.ask('mcp__parley__ask_human', { prompt: 'Which?' })).toBeUndefined();
    expect(await one.bash('make')).toBe('deny');
    const other = await open();
    expect(await other.bash('make')).toBe('defer');
    expect(await other.ask('mcp__parley__ask_human', { prompt: 'Which?' })).toBe('deny');
  });
});

describe('a decision', () => {
  test.each(['approve', 'approve_for_session'])(
    '%s allows exactly its call, once, and is stored first',
    async (decision) => {
      const { bash, applied } = await open(answered('make', { decision }));
      expect(await bash('make all')).toBe('defer');
      expect(await bash('make', { cwd: '/elsewhere' })).toBe('deny');
      expect(await bash('make', { agent_id: 'a' })).toBe('deny');
      expect(await applied()).toBe(0);
      expect(await bash('make')).toBe('allow');
      expect(await applied()).toBe(1);
      expect(await bash('make')).not.toBe('allow');
      expect(await applied()).toBe(1);
    },
  );

  test('of twenty concurrent requests for it, one is allowed', async () => {
    const { bash, applied } = await open(answered('make', { decision: 'approve' }));
    const decisions = await Promise.all(Array.from({ length: 20 }, () => bash('make')));
    expect(decisions.filter((each) => each === 'allow')).toHaveLength(1);
    expect(await applied()).toBe(1);
  });

  test.each([
    [{ decision: 'decline' }, 1, false],
    [{ decision: 'cancel' }, 1, true],
    ['Nobody answered in time.', 0, false],
    [{ decision: true }, 0, false],
    [null, 0, false],
  ])('%j denies the call', async (response, stored, isStopped) => {
    const { gate, bash, applied } = await open(answered('make', response));
    expect(await bash('make')).toBe('deny');
    expect(await applied()).toBe(stored);
    expect(gate.stopped).toBe(isStopped);
    expect(await bash('other')).toBe(isStopped ? 'deny' : 'defer');
  });

  test('that cannot be stored allows nothing, then or later', async () => {
    const { bash } = await open(answered('make', { decision: 'approve' }), true);
    const first = await bash('make').catch(() => 'no reply');
    expect(first).toBe('no reply');
    expect(await bash('make').catch(() => 'no reply')).toBe('defer');
  });
});

test('only approvals are bound to a digest', async () => {
  const { gate } = await open();
  const question = claudeGate.describe({ tool: 'Bash', input: { command: 'make' }, cwd: CWD });
  expect(question && gate.bind(question).digest).toBe(digestOf('make'));
  const plain = { kind: 'open_text', prompt: 'Which?', options: [], channel: 'tool' } as const;
  const without = claudeGate.describe({ tool: 'Bash', input: { command: 'make' }, cwd: '' });
  const folder = gate.bind(without ?? plain);
  expect(folder.action?.['cwd']).toMatch(/^\//);
  expect(folder.prompt).toContain(`  | ${folder.action?.['cwd'] as string}`);
  expect(folder.digest).not.toBe(digestOf('make'));
  expect(gate.bind(plain)).toEqual(plain);
});

test('after it was closed, the gate decides nothing, and it may be closed again', async () => {
  const { gate } = await open(answered('make', { decision: 'approve' }));
  const { url } = gate;
  await gate.close();
  await expect(fetch(url, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } })).rejects.toThrow();
  await gate.close();
});

test('the engine reaches the gate without the proxy of the user', () => {
  expect(withoutProxy({ HTTP_PROXY: 'http://proxy' })).toEqual({ NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' });
  expect(withoutProxy({ NO_PROXY: '.example', no_proxy: '' })).toEqual({
    NO_PROXY: '.example,127.0.0.1',
    no_proxy: '127.0.0.1',
  });
});
