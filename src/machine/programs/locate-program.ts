// Locates the program of an engine by path, by name, or on PATH.
import { existsSync, realpathSync } from 'node:fs';
import type { ProbeRules } from '../../engines/engine.js';
import { findNamed, findOnPath } from '../../process/find-program.js';

export interface WhereToLook {
  // A path or a program name; undefined: the usual name of the engine's program.
  readonly named: string | undefined;
  // The value of PATH.
  readonly path: string;
  // For instance linux-x64.
  readonly platform: string;
}

// Returns the native program instead of the wrapper that npm installs: a wrapper that is killed leaves its child
// running.
export function locateProgram(
  { binary, natives }: Pick<ProbeRules, 'binary' | 'natives'>,
  { named, path, platform }: WhereToLook,
): string | null {
  const program = named === undefined ? findOnPath(binary, path) : findNamed(named, path);
  if (program === null || !natives) return program;
  return natives(realpathSync(program), platform).find((candidate) => existsSync(candidate)) ?? program;
}
