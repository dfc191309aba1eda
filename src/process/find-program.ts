// Finds a program on PATH as a shell would: a file that may be executed. Looks only.
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

export function findOnPath(name: string, path: string): string | null {
  for (const folder of path.split(delimiter)) {
    const candidate = join(folder === '' ? '.' : folder, name);
    if (isProgram(candidate)) return resolve(candidate);
  }
  return null;
}

// One that somebody named: a path is taken as it is, a bare name is looked up.
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
