// Finds iFlow. Its CLI was shut down in April 2026; the parser was tested on recordings of the last version.
import type { ProbeRules } from '../engine.js';

export const iflowProbe: ProbeRules = {
  binary: 'iflow',
  packages: /^@iflow-ai\/iflow-cli$/,
  versionArgs: ['--version'],
  parseVersion: (output) => /(\d+\.\d+\.\d+\S*)/.exec(output)?.[1] ?? null,
  resume: { args: ['--help'], shows: /--resume\b/ },
  provedVersion: '0.5.19',
  install: 'iFlow CLI is no longer distributed; name an existing installation in PARLEY_IFLOW_BIN',
};
