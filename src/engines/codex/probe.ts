// Is Codex there, and is it the version whose output the parser knows?
import type { ProbeRules } from '../engine.js';

export const codexProbe: ProbeRules = {
  binary: 'codex',
  versionArgs: ['--version'],
  parseVersion: (output) => /codex(?:-cli)?\s+(\d+\.\d+\.\d+\S*)/.exec(output)?.[1] ?? null,
  provedVersion: '0.166.0',
  install: 'npm install -g @openai/codex',
};
