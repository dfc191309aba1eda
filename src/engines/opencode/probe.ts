// Finds OpenCode and checks that it is a version whose output the parser knows.
import { dirname, join } from 'node:path';
import type { ProbeRules } from '../engine.js';

export const opencodeProbe: ProbeRules = {
  binary: 'opencode',
  natives: (wrapper, platform) => [
    join(dirname(wrapper), '..', '..', `opencode-${platform}`, 'bin', 'opencode'),
    join(dirname(wrapper), '..', 'node_modules', `opencode-${platform}`, 'bin', 'opencode'),
  ],
  packages: /^opencode(?:-|$)/,
  versionArgs: ['--version'],
  parseVersion: (output) => /(\d+\.\d+\.\d+\S*)/.exec(output)?.[1] ?? null,
  resume: { args: ['run', '--help'], shows: /--session\b/ },
  provedVersion: '1.18.33',
  install: 'npm install -g opencode-ai',
};
