// The rehearsal comes with Parley: it exists as soon as Parley is built, in the version that the parser knows.
import { REHEARSAL_VERSION } from '../../rehearsal/version.js';
import type { ProbeRules } from '../engine.js';

export const rehearsalProbe: ProbeRules = {
  binary: 'rehearsal',
  bundled: 'rehearsal/main.js',
  packages: /^parley$/,
  versionArgs: ['--version'],
  parseVersion: (output) => /^rehearsal (\d+\.\d+\.\d+\S*)/m.exec(output)?.[1] ?? null,
  provedVersion: REHEARSAL_VERSION,
  install: 'it comes with Parley; npm run build makes it',
};
