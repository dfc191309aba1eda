// Builds `gemini -o stream-json`, which prints the session id on the first line. The prompt is written to stdin,
// because a leading dash breaks an argument. Runs as one process, so that signals reach it.
import { asText } from '../as-text.js';
import { modelArgument, type CommandBuilder, type EngineCommand, type TurnSpec } from '../engine.js';

const APPROVAL = { 'read-only': 'default', 'workspace-write': 'auto_edit', full: 'yolo' } as const;

export const geminiCommand: CommandBuilder = {
  // The chosen id is only a cross-check; the handle is the id in the output.
  buildStart: (spec) => ({
    ...buildTurnCommand(spec, ['--session-id', spec.newSessionId]),
    chosenSession: spec.newSessionId,
  }),
  buildResume: (spec, handle) => buildTurnCommand(spec, ['--resume', handle.handle_value]),
};

function buildTurnCommand(spec: TurnSpec, session: readonly string[]): EngineCommand {
  return {
    argv: [
      ...spec.program,
      ...modelArgument(spec),
      '-o',
      'stream-json',
      '--approval-mode',
      APPROVAL[spec.permission],
      // Trusted only after the settings are read: the workspace's settings, which can start programs, are left out, and
      // the question tool, which needs trust, is available.
      ...(spec.permission === 'full' ? [] : ['--skip-trust']),
      ...session,
    ],
    // Sessions are bound to the exact directory.
    cwd: spec.cwd,
    stdin: asText(spec.prompt, spec.hasFile),
    env: { GEMINI_CLI_NO_RELAUNCH: '1', GEMINI_CLI_TRUST_WORKSPACE: spec.permission === 'full' ? 'true' : '' },
  };
}
