// Finds an executable file on PATH, as a shell does. Read-only.
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

export function findOnPath(name: string, path: string): string | null {
  for (const folder of path.split(delimiter)) {
    const candidate = join(folder === '' ? '.' : folder, name);
    if (isProgram(candidate)) return resolve(candidate);
  }
  return null;
}

// For a program that a person named: uses a path as it is, and searches PATH for a bare name.
export function findNamed(named: string, path: string): string | null {
  if (isAbsolute(named) || named.includes('/')) return isProgram(named) ? resolve(named) : null;
  return findOnPath(named, path);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
