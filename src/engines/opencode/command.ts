// Builds `opencode run --format json`. The prompt is written to stdin (as an argument it would be wrapped in quotes).
// --dir is passed on every call: a resume from another directory hangs without any output.
import { join } from 'node:path';
import { modelArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

// Rules for an agent without `full` permission. The CLI has no flag for it, and an agent's own rules override general
// ones, so below `full` an agent of ours runs the turn, which no other settings change. A subagent would have its own
// rules.
const DENIED = {
  'read-only': ['edit', 'bash', 'task', 'webfetch', 'websearch', 'external_directory'],
  'workspace-write': ['external_directory'],
} as const;
const AGENT = 'parley';

export const opencodeCommand: CommandBuilder = {
  buildStart: (spec) => buildTurnCommand(spec, ['--title', 'parley']),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['--session', handle.handle_value]),
};

function buildTurnCommand(spec: TurnSpec, session: readonly string[]): EngineCommand {
  return {
    argv: [
      ...spec.program,
      'run',
      '--format',
      'json',
      '--dir',
      spec.cwd,
      ...modelArgument(spec),
      ...(spec.permission === 'full' ? ['--auto'] : ['--agent', AGENT]),
      ...session,
    ],
    cwd: spec.cwd,
    stdin: spec.prompt,
    env: {
      OPENCODE_CONFIG_CONTENT: literally(JSON.stringify(configOf(spec))),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      // The workspace's settings can start programs: MCP servers, tools, formatters. Its plugins are loaded regardless
      // (home.ts refuses them).
      ...(spec.permission === 'full' ? {} : { OPENCODE_DISABLE_PROJECT_CONFIG: '1' }),
    },
  };
}

// Merged over the user's own. The question tool is always allowed, because OpenCode rejects an "ask" without a message
// here.
function configOf({ cwd, permission, ask }: TurnSpec): object {
  const asking = ask ? { 'parley_*': 'allow' } : {};
  return {
    autoupdate: false,
    share: 'disabled',
    ...(permission === 'full'
      ? ask && { permission: asking }
      : {
          agent: {
            [AGENT]: {
              mode: 'primary',
              permission: { ...Object.fromEntries(DENIED[permission].map((name) => [name, 'deny'])), ...asking },
            },
          },
          // Instructions of the workspace are still read: they are only text.
          instructions: [join(cwd, 'AGENTS.md')],
        }),
    ...(ask ? { mcp: { parley: { type: 'local', command: ask, enabled: true } } } : {}),
  };
}

// OpenCode expands variables and files in the text of its settings; escaped like this, a brace stays a brace.
function literally(json: string): string {
  return json.replace(/\{(?=env:|file:)/g, '\\u007b');
}
