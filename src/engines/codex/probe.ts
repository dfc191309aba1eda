// Finds Codex and checks that it is a version whose output the parser knows.
import { dirname, join } from 'node:path';
import type { ProbeRules } from '../engine.js';

export const codexProbe: ProbeRules = {
  binary: 'codex',
  // npm installs a wrapper on the PATH; the program itself is in a package next to it.
  natives: (wrapper, platform) => {
    const [os = '', arch = ''] = platform.split('-');
    const system = os === 'darwin' ? 'apple-darwin' : 'unknown-linux-musl';
    const triple = `${arch === 'arm64' ? 'aarch64' : 'x86_64'}-${system}`;
    const vendor = join('vendor', triple, 'bin', 'codex');
    const packages = join(dirname(wrapper), '..', '..');
    return [
      join(packages, `codex-${platform}`, vendor),
      join(dirname(wrapper), '..', 'node_modules', '@openai', `codex-${platform}`, vendor),
    ];
  },
  packages: /^@openai\/codex(?:-|$)/,
  versionArgs: ['--version'],
  parseVersion: (output) => /codex(?:-cli)?\s+(\d+\.\d+\.\d+\S*)/.exec(output)?.[1] ?? null,
  resume: { args: ['exec', 'resume', '--help'], shows: /exec resume .*SESSION_ID/ },
  provedVersion: '0.166.0',
  install: 'npm install -g @openai/codex',
};
