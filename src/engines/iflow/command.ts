// iflow -p: --resume always with an id, because without one it opens a picker.
import type { CommandBuilder, EngineCommand, TurnSpec } from '../engine.js';

const APPROVAL = { 'read-only': '--plan', 'workspace-write': '--autoEdit', full: '--yolo' } as const;

export const iflowCommand: CommandBuilder = {
  buildStart: (spec) => build(spec, []),
  buildResume: (spec, handle) => build(spec, ['--resume', handle.handle_value]),
};

function build(spec: TurnSpec, resume: readonly string[]): EngineCommand {
  return {
    argv: [
      spec.bin,
      APPROVAL[spec.permission],
      ...(spec.model === undefined ? [] : ['-m', spec.model]),
      ...resume,
      // One word with the option, so that a prompt with a leading dash stays a prompt.
      `--prompt=${spec.prompt}`,
    ],
    cwd: spec.cwd,
    stdin: null,
    env: {},
  };
}
