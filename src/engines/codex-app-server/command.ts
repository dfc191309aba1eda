// codex app-server: all that a turn needs is said to it later, by requests.
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
