// Builds `iflow -p`. --resume always has an id, because without one it opens a picker.
import { asText } from '../as-text.js';
import { fitsArgument, modelArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

const APPROVAL = { 'read-only': '--plan', 'workspace-write': '--autoEdit', full: '--yolo' } as const;

export const iflowCommand: CommandBuilder = {
  buildStart: (spec) => buildTurnCommand(spec, []),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['--resume', handle.handle_value]),
};

function buildTurnCommand(spec: TurnSpec, resume: readonly string[]): EngineCommand {
  const prompt = asText(spec.prompt, spec.hasFile);
  const byStdin = !fitsArgument(prompt);
  return {
    argv: [
      ...spec.program,
      APPROVAL[spec.permission],
      ...modelArgument(spec),
      ...resume,
      ...(byStdin ? [] : promptArgs(prompt)),
    ],
    cwd: spec.cwd,
    stdin: byStdin ? prompt : null,
    env: {},
  };
}

// One word with the option, because a leading dash would turn the prompt into an option.
function promptArgs(prompt: string): string[] {
  return prompt.startsWith('-') ? [`--prompt=${prompt}`] : ['-p', prompt];
}
