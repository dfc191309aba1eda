// Reads the version of a program from the package.json above it, if that is a package of the engine. Starts no process.
import { dirname, join } from 'node:path';
import type { Engine } from '../../engines/engine.js';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { realPathOf } from '../../files/real-path.js';

// How many folders to search, from the program of a platform package up to the root of the package.
const LEVELS = 6;

export function packageVersion(
  { probe: { packages, bundled, provedVersion } }: Engine,
  program: readonly string[],
): string | undefined {
  // A bundled engine always has the version that the parser was tested with.
  if (bundled !== undefined) return provedVersion;
  const script = program.at(-1);
  if (script === undefined) return undefined;
  let folder = dirname(realPathOf(script) ?? script);
  for (let level = 0; level < LEVELS; level += 1, folder = dirname(folder)) {
    const version = versionIn(join(folder, 'package.json'), packages);
    if (version !== undefined) return version;
  }
  return undefined;
}

// Returns only the three numbers: platform packages append their platform to the version.
function versionIn(path: string, packages: RegExp): string | undefined {
  try {
    const { name, version } = JSON.parse(readTextSync(path, OWN_FILE) ?? '{}') as { name?: unknown; version?: unknown };
    return typeof name === 'string' && packages.test(name) && typeof version === 'string'
      ? /^\d+\.\d+\.\d+/.exec(version)?.[0]
      : undefined;
  } catch {
    return undefined;
  }
}
