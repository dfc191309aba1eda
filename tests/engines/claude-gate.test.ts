// Which calls of Claude Code need a person, how they are shown, and what the hook is answered.
import { describe, expect, test } from 'vitest';
import { claudeGate } from '../../src/engines/claude/gate.js';
import { looksReadOnly } from '../../src/engines/claude/read-only-command.js';
import type { JsonObject } from '../../src/kernel/json.js';

const CALL = {
  session_id: 's',
  cwd: '/work',
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command: 'make', description: 'Builds it' },
  tool_use_id: 'toolu_1',
  prompt_id: 'p',
};

function call(tool: string, input: JsonObject = {}) {
  return { id: 'toolu_1', prompt: 'p', tool, input, cwd: '/work', isSubagent: false };
}

describe('a request of the hook', () => {
  test('is a tool call with its input and its folder', () => {
    expect(claudeGate.readCall(CALL)).toEqual({
      id: 'toolu_1',
      prompt: 'p',
      tool: 'Bash',
      input: { command: 'make', description: 'Builds it' },
      cwd: '/work',
      isSubagent: false,
    });
    expect(claudeGate.readCall({ ...CALL, agent_id: 'a' })).toMatchObject({ isSubagent: true });
  });

  test.each<[string, JsonObject | undefined]>([
    ['nothing', undefined],
    ['another event', { ...CALL, hook_event_name: 'PostToolUse' }],
    ['no id', { ...CALL, tool_use_id: null }],
    ['no tool', { ...CALL, tool_name: 1 }],
    ['no folder', { ...CALL, cwd: null }],
  ])('with %s is about no call', (_what, body) => {
    expect(claudeGate.readCall(body)).toBeNull();
  });
});

describe('a person', () => {
  test.each<[string, JsonObject, boolean, boolean]>([
    ['Bash', { command: 'ls -la' }, false, false],
    ['Bash', { command: 'npm test' }, true, true],
    ['Bash', {}, true, true],
    ['Read', { file_path: '/work/a' }, false, false],
    ['Read', { file_path: 'a' }, false, false],
    ['Read', { file_path: '/work/../etc/passwd' }, true, true],
    ['Read', { file_path: '/workshop/a' }, true, true],
    ['Grep', { pattern: 'x' }, false, false],
    ['Glob', { pattern: '*', path: '/' }, true, true],
    ['Write', { file_path: '/work/a' }, true, false],
    ['Edit', { file_path: '/etc/a' }, true, true],
    ['NotebookEdit', { notebook_path: '/etc/a' }, true, true],
    ['WebFetch', { url: 'http://x' }, true, true],
    ['mcp__other__tool', {}, true, true],
    ['SomethingNew', {}, true, true],
    ['mcp__parley__ask_human', {}, false, false],
    ['Agent', {}, false, false],
    ['ToolSearch', {}, false, false],
  ])('is needed for %s with %j: %s with read-only, %s with workspace-write', (tool, input, inReading, inWriting) => {
    expect(claudeGate.needsPerson(call(tool, input), 'read-only')).toBe(inReading);
    expect(claudeGate.needsPerson(call(tool, input), 'workspace-write')).toBe(inWriting);
  });

  test.each(['ls', 'cat a b', 'grep -rn x src | head -3', 'git log --oneline && git status', 'find . -name "*.ts"'])(
    'is not needed for the command %j',
    (command) => {
      expect(looksReadOnly(command)).toBe(true);
    },
  );

  test.each([
    '',
    'rm a',
    'ls; rm a',
    'sort -uofoo a',
    "sed -n 'w out' a",
    'uniq a out',
    'git branch -D main',
    'rg --pre=./x y',
    'find . -fls x',
    'find . -okdir rm',
    'tree -oout',
    'date -s x',
    'test x\rrm y',
    'ls\nrm a',
    'ls & rm a',
    'cat a > b',
    'cat $(touch b)',
    'cat `touch b`',
    'cat <(touch b)',
    'cat $HOME/x',
    'cat /etc/passwd',
    'cat ~/x',
    'ls ..',
    'cat ../x',
    'find . -delete',
    'find . -exec rm {} +',
    'sed -i s/a/b/ x',
    'git push',
    'git',
    'env rm x',
    'X=1 rm',
  ])('is needed for the command %j', (command) => {
    expect(looksReadOnly(command)).toBe(false);
  });
});

describe('an approval', () => {
  test('of a command has all of its input but the agent’s reason, which is only shown', () => {
    const input = { command: 'make', description: 'Builds it', timeout: 5 };
    const question = claudeGate.describe(call('Bash', input));
    expect(question).toMatchObject({
      kind: 'approval',
      action: { kind: 'command', command: 'make', cwd: '/work', options: { timeout: 5 } },
      channel: 'native',
    });
    expect(question?.prompt).toBe(
      'The agent wants to run a command:\n  | make\nin\n  | /work\nwith\n  | {"timeout":5}\nIts reason:\n  | Builds it',
    );
    expect(claudeGate.describe(call('Bash', { command: 'make' }))?.action).toEqual({
      kind: 'command',
      command: 'make',
      cwd: '/work',
    });
  });

  test('of another tool has its whole input', () => {
    const input = { file_path: '/work/a', old_string: 'x', new_string: 'y' };
    expect(claudeGate.describe(call('Edit', input))?.action).toEqual({
      kind: 'tool_call',
      tool: 'Edit',
      input,
      cwd: '/work',
    });
  });

  test('of an input that cannot be shown completely does not exist', () => {
    let deep: JsonObject = {};
    for (let level = 0; level < 1000; level += 1) deep = { deep };
    expect(claudeGate.describe(call('Write', deep))).toBeNull();
  });
});

test('the hook is answered in its own words, and with nothing where Claude Code decides', () => {
  expect(claudeGate.buildReply({ type: 'pass' })).toEqual({});
  expect(claudeGate.buildReply({ type: 'deny', reason: 'No.' })).toEqual({
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: 'No.',
    },
  });
  for (const type of ['allow', 'defer'] as const)
    expect(claudeGate.buildReply({ type })).toEqual({
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: type },
    });
});
