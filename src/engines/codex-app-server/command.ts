// The command for `codex app-server`. Everything that a turn needs is sent later, in requests.
import type { CommandBuilder, EngineCommand, TurnSpec } from '../engine.js';
import { SETTINGS } from '../codex/command.js';

export const codexAppServerCommand: CommandBuilder = {
  buildStart: buildTurnCommand,
  buildResume: buildTurnCommand,
  buildFork: buildTurnCommand,
};

function buildTurnCommand(spec: TurnSpec): EngineCommand {
  return {
    argv: [...spec.program, 'app-server', ...SETTINGS.flatMap((setting) => ['-c', setting])],
    cwd: spec.cwd,
    stdin: null,
    env: {},
  };
}
