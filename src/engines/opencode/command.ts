// opencode run --format json: the prompt goes by stdin (as an argument it would be wrapped in quotes).
// --dir on every call: a resume from another directory hangs without a word.
import type { CommandBuilder, EngineCommand, TurnSpec } from '../engine.js';

// What may be done without asking; the CLI has no flag for less, so it is given as configuration.
const RULES = {
  'read-only': { permission: { edit: 'deny', bash: 'deny', webfetch: 'deny', external_directory: 'deny' } },
  'workspace-write': { permission: { external_directory: 'deny' } },
  full: {},
} as const;

export const opencodeCommand: CommandBuilder = {
  buildStart: (spec) => build(spec, ['--title', 'parley']),
  buildResume: (spec, handle) => build(spec, ['--session', handle.handle_value]),
};

function build(spec: TurnSpec, session: readonly string[]): EngineCommand {
  return {
    argv: [
      ...spec.program, 'run', '--format', 'json',
      '--dir', spec.cwd,
      ...(spec.model === undefined ? [] : ['--model', spec.model]),
      ...(spec.permission === 'full' ? ['--auto'] : []),
      ...session,
    ],
    cwd: spec.cwd,
    stdin: spec.prompt,
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configOf(spec)),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
    },
  };
}

// Merged with the user's own. The question tool is always allowed: an "ask" is rejected without a word here.
function configOf({ permission, ask }: TurnSpec): object {
  const base = { autoupdate: false, share: 'disabled' };
  if (!ask) return { ...base, ...RULES[permission] };
  const rules: { permission?: object } = RULES[permission];
  return { ...base, permission: { ...rules.permission, 'parley_*': 'allow' }, mcp: { parley: { type: 'local', command: ask, enabled: true } } };
}
