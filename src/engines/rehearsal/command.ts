// Builds the command of the bundled rehearsal: the prompt is written to stdin, and we choose the id of a new session.
import { modelArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

export const rehearsalCommand: CommandBuilder = {
  buildStart: (spec) => buildTurnCommand(spec, ['--new-session', spec.newSessionId]),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['--session', handle.handle_value]),
};

function buildTurnCommand(spec: TurnSpec, session: readonly string[]): EngineCommand {
  return {
    argv: [...spec.program, '--permission', spec.permission, ...modelArgument(spec), ...session],
    cwd: spec.cwd,
    stdin: spec.prompt,
    env: {},
  };
}
