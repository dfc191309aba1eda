// codex exec --json: the options stand before the word `resume`, the thread id before the prompt.
import { fitsArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

const SANDBOX = { 'read-only': 'read-only', 'workspace-write': 'workspace-write', full: 'danger-full-access' } as const;

export const codexCommand: CommandBuilder = {
  buildStart: (spec) => build(spec, []),
  buildResume: (spec, handle) => build(spec, ['resume', handle.handle_value]),
};

function build(spec: TurnSpec, resume: readonly string[]): EngineCommand {
  // As an argument a leading dash makes an option of it, and a single word may be a subcommand (`codex exec review`).
  const byStdin = spec.prompt.startsWith('-') || !/\s/.test(spec.prompt) || !fitsArgument(spec.prompt);
  return {
    argv: [
      ...spec.program, 'exec', '--json', '--skip-git-repo-check',
      '-C', spec.cwd,
      // Given at every resume too: Codex does not restore it.
      '-s', SANDBOX[spec.permission],
      ...(spec.model === undefined ? [] : ['-m', spec.model]),
      ...(spec.outputSchemaFile === undefined ? [] : ['--output-schema', spec.outputSchemaFile]),
      ...resume,
      byStdin ? '-' : spec.prompt,
    ],
    cwd: spec.cwd,
    // Codex reads an open stdin to its end before it starts: it must be closed.
    stdin: byStdin ? spec.prompt : null,
    env: {},
  };
}
