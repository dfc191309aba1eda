// Finds Gemini CLI and checks that it is a version whose output the parser knows.
import type { ProbeRules } from '../engine.js';

export const geminiProbe: ProbeRules = {
  binary: 'gemini',
  packages: /^@google\/gemini-cli$/,
  versionArgs: ['--version'],
  parseVersion: (output) => /^(\d+\.\d+\.\d+\S*)/m.exec(output)?.[1] ?? null,
  resume: { args: ['--help'], shows: /--resume\b/ },
  provedVersion: '0.61.0',
  install: 'npm install -g @google/gemini-cli',
};
