// Builds `codex exec --json`. The options precede the word `resume` or `fork`, the thread id precedes the prompt.
import { fitsArgument, modelArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

export const SANDBOX = {
  'read-only': 'read-only',
  'workspace-write': 'workspace-write',
  full: 'danger-full-access',
} as const;

// Override the user's settings: without the first, Codex waits forever for a lost network.
export const SETTINGS = ['features.unbounded_connection_retries=false', 'check_for_update_on_startup=false'];

export const codexCommand: CommandBuilder = {
  buildStart: (spec) => buildTurnCommand(spec, []),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['resume', handle.handle_value]),
  buildFork: (spec, sessionId) => buildTurnCommand(spec, ['fork', sessionId]),
};

function buildTurnCommand(spec: TurnSpec, basis: readonly string[]): EngineCommand {
  // As an argument, a leading dash would be read as an option, and a single word may be a subcommand (`codex exec
  // review`).
  const byStdin = spec.prompt.startsWith('-') || !/\s/.test(spec.prompt) || !fitsArgument(spec.prompt);
  return {
    argv: [
      ...spec.program,
      'exec',
      '--json',
      '--skip-git-repo-check',
      '-C',
      spec.cwd,
      // Passed at every resume and fork, because Codex does not restore it.
      '-s',
      SANDBOX[spec.permission],
      ...modelArgument(spec),
      ...[...SETTINGS, ...(spec.ask ? askSettings(spec.ask) : [])].flatMap((setting) => ['-c', setting]),
      ...(spec.outputSchemaFile === undefined ? [] : ['--output-schema', spec.outputSchemaFile]),
      ...basis,
      byStdin ? '-' : spec.prompt,
    ],
    cwd: spec.cwd,
    // Codex reads an open stdin to its end before it starts, so it must be closed.
    stdin: byStdin ? spec.prompt : null,
    env: {},
  };
}

// The thread stores none of this, so it is passed at every resume. Without the last three, Codex hides the tool behind
// a search, refuses to call it, or continues without it when it starts slowly.
function askSettings([command = '', ...args]: readonly string[]): string[] {
  return [
    `mcp_servers.parley.command=${JSON.stringify(command)}`,
    `mcp_servers.parley.args=${JSON.stringify(args)}`,
    'mcp_servers.parley.startup_timeout_sec=30',
    'mcp_servers.parley.omit_tools_from=["deferred"]',
    'mcp_servers.parley.default_tools_approval_mode="approve"',
    'mcp_servers.parley.required=true',
  ];
}
