// Builds `claude -p --output-format stream-json`. The prompt is written to stdin, where it cannot be an option.
import { modelArgument, type CommandBuilder, type EngineCommand, type Permission, type TurnSpec } from '../engine.js';
import { claudeText } from './as-text.js';

const GATE_TOKEN = 'PARLEY_GATE_TOKEN';
// A reply that is late counts as none.
const GATE_TIMEOUT_SEC = 60;

export const claudeCommand: CommandBuilder = {
  // The chosen id is only a cross-check; the handle is the id in the output.
  buildStart: (spec) => newSession(spec, []),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['--resume', handle.handle_value]),
  buildFork: (spec, sessionId) => newSession(spec, ['--resume', sessionId, '--fork-session']),
};

function newSession(spec: TurnSpec, basis: readonly string[]): EngineCommand {
  const chosenSession = spec.newSessionId;
  return { ...buildTurnCommand(spec, [...basis, '--session-id', chosenSession]), chosenSession };
}

function buildTurnCommand(spec: TurnSpec, session: readonly string[]): EngineCommand {
  return {
    argv: [
      ...spec.program,
      '-p',
      '--output-format',
      'stream-json',
      '--verbose',
      ...session,
      ...modelArgument(spec),
      ...permissionArguments(spec.permission),
      ...(spec.ask ? askArguments(spec.ask) : []),
      ...allowedTools(spec),
      ...(spec.gate ? gateArguments(spec.gate.url) : []),
      ...(spec.instructions ? ['--append-system-prompt-file', spec.instructions.path] : []),
    ],
    cwd: spec.cwd,
    stdin: spec.resumesCall ? null : claudeText(spec.prompt, spec.hasFile),
    ...(spec.instructions ? { file: spec.instructions } : {}),
    env: {
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // The process would stay after its turn and start another one by itself.
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
      // By default a refused login is retried for more than a minute.
      CLAUDE_CODE_MAX_RETRIES: '3',
      ...(spec.gate ? { [GATE_TOKEN]: spec.gate.token } : {}),
      // Claude Code refuses to skip its permission checks as root without it.
      ...(spec.permission === 'full' && process.getuid?.() === 0 ? { IS_SANDBOX: '1' } : {}),
    },
  };
}

// Below `full` nothing of the workspace's settings applies: they can start programs and allow tools. Without a person
// at a terminal, the default mode denies every call that it would ask about.
function permissionArguments(permission: Permission): string[] {
  if (permission === 'full') return ['--permission-mode', 'bypassPermissions'];
  return ['--permission-mode', 'default', '--setting-sources', 'user', '--strict-mcp-config'];
}

// Asked before each call; the token is not in the arguments, which other users of the machine can read.
function gateArguments(url: string): string[] {
  const headers = { authorization: `Bearer $${GATE_TOKEN}` };
  const hook = { type: 'http', url, headers, allowedEnvVars: [GATE_TOKEN], timeout: GATE_TIMEOUT_SEC };
  return ['--settings', JSON.stringify({ hooks: { PreToolUse: [{ matcher: '*', hooks: [hook] }] } })];
}

// Without alwaysLoad the tool is hidden behind a search.
function askArguments(ask: readonly string[]): string[] {
  const [command = '', ...args] = ask.map(literally);
  const parley = { type: 'stdio', command, args, alwaysLoad: true };
  return ['--mcp-config', JSON.stringify({ mcpServers: { parley } })];
}

// Claude Code expands variables in these texts: a dollar sign before a brace is written as the default of a variable
// that is never set.
function literally(text: string): string {
  return text.replaceAll('${', '${PARLEY_NEVER_SET:-$}{');
}

// `Edit` covers every tool that changes files; the pattern is relative to the folder of the run.
function allowedTools({ permission, ask }: TurnSpec): string[] {
  const rules = [
    ...(permission === 'workspace-write' ? ['Edit(./**)'] : []),
    ...(ask ? ['mcp__parley__ask_human'] : []),
  ];
  return rules.length === 0 ? [] : ['--allowedTools', ...rules];
}
