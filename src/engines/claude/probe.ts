// Finds Claude Code and checks that it is a version whose output the parser knows.
import { dirname, join } from 'node:path';
import type { ProbeRules } from '../engine.js';

export const claudeProbe: ProbeRules = {
  binary: 'claude',
  // npm installs a wrapper; the program itself is in a platform package next to it or below it.
  natives: (wrapper, platform) => {
    const program = join(`claude-code-${platform}`, 'claude');
    const packages = [
      join(dirname(wrapper), '..', '..'),
      join(dirname(wrapper), '..', 'node_modules', '@anthropic-ai'),
    ];
    return packages.map((folder) => join(folder, program));
  },
  packages: /^@anthropic-ai\/claude-code(?:-|$)/,
  versionArgs: ['--version'],
  parseVersion: (output) => /^(\d+\.\d+\.\d+\S*) \(Claude Code\)/m.exec(output)?.[1] ?? null,
  resume: { args: ['--help'], shows: /--resume\b/ },
  provedVersion: '2.1.326',
  install: 'npm install -g @anthropic-ai/claude-code',
};
