// The program behind a wrapper, where there is one: killed, the wrapper would leave it running.
import { existsSync, realpathSync } from 'node:fs';
import type { ProbeRules } from './engine.js';

export function nativeOf(found: string | null, { natives }: ProbeRules, platform: string): string | null {
  if (found === null || !natives) return found;
  return natives(realpathSync(found), platform).find((path) => existsSync(path)) ?? found;
}
