// Claude Code's PreToolUse hook: which calls need a person, and how Parley replies. Claude Code decides calls that pass
// by its permission mode, which denies whatever it would ask a person about.
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { asObject, asString, isDeeperThan, type JsonObject } from '../../kernel/json.js';
import { buildApproval, type Question } from '../../run/interaction.js';
import { joinLines, labelled, oneLine, quoted } from '../approval-text.js';
import { isAskTool } from '../ask-tool.js';
import type { Permission } from '../engine.js';
import type { GateRules, ToolCall, Verdict } from '../gate.js';
import { looksReadOnly } from './read-only-command.js';

const EVENT = 'PreToolUse';
// Tools that change nothing outside of the conversation. Tools of a subagent are asked about one by one.
const HARMLESS = new Set(['Agent', 'Task', 'TaskOutput', 'TaskStop', 'TodoWrite', 'ToolSearch', 'Skill', 'ListAgents']);
const READS = new Set(['Read', 'Glob', 'Grep', 'LS', 'NotebookRead']);
const WRITES = new Set(['Write', 'Edit', 'MultiEdit', 'NotebookEdit']);
const PATHS = ['file_path', 'notebook_path', 'path'];

export const claudeGate: GateRules = {
  readCall(body) {
    const call = asObject(body);
    const [id, tool, cwd] = [asString(call?.tool_use_id), asString(call?.tool_name), asString(call?.cwd)];
    if (call?.hook_event_name !== EVENT || id === undefined || tool === undefined || cwd === undefined) return null;
    return {
      id,
      prompt: asString(call.prompt_id) ?? null,
      tool,
      input: asObject(call.tool_input) ?? {},
      cwd,
      isSubagent: call.agent_id !== undefined,
    };
  },
  isQuestion: ({ tool }) => isAskTool(tool),
  needsPerson,
  describe: describeCall,
  buildReply,
};

function needsPerson({ tool, input, cwd }: ToolCall, permission: Permission): boolean {
  if (isAskTool(tool) || HARMLESS.has(tool)) return false;
  if (tool === 'Bash') return !looksReadOnly(asString(input.command) ?? '');
  if (READS.has(tool)) return !isInside(input, cwd);
  if (WRITES.has(tool)) return permission === 'read-only' || !isInside(input, cwd);
  return true;
}

// Without a path, these tools work in the folder.
function isInside(input: JsonObject, cwd: string): boolean {
  return PATHS.every((name) => {
    const path = relative(cwd, resolve(cwd, asString(input[name]) ?? '.'));
    return path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
  });
}

export function describeCall({ tool, input, cwd }: Pick<ToolCall, 'tool' | 'input' | 'cwd'>): Question | null {
  // Can be neither stored nor shown completely.
  if (isDeeperThan(input)) return null;
  const command = asString(input.command);
  if (tool !== 'Bash' || command === undefined) {
    const prompt = joinLines(`The agent wants to use the tool ${oneLine(tool)}:`, quoted(input), labelled('in', cwd));
    return buildApproval(prompt, { kind: 'tool_call', tool, input, cwd });
  }
  const { command: _command, description, ...options } = input;
  const hasOptions = Object.keys(options).length > 0;
  const prompt = joinLines(
    'The agent wants to run a command:',
    quoted(command),
    labelled('in', cwd),
    hasOptions ? labelled('with', options) : null,
    labelled('Its reason:', description),
  );
  return buildApproval(prompt, { kind: 'command', command, cwd, ...(hasOptions ? { options } : {}) });
}

function buildReply(verdict: Verdict): JsonObject {
  if (verdict.type === 'pass') return {};
  return {
    hookSpecificOutput: {
      hookEventName: EVENT,
      permissionDecision: verdict.type,
      ...(verdict.type === 'deny' ? { permissionDecisionReason: verdict.reason } : {}),
      ...(verdict.type === 'allow' && verdict.note !== undefined ? { additionalContext: verdict.note } : {}),
    },
  };
}
