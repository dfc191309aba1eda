// The folder that a new run is to work in: resolved once, and that very path is checked and stored. A link that is
// changed between a check and its use would lead elsewhere.
import { lstatSync, type Stats } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isWithin, nearestRealPath, realPathOf } from '../files/real-path.js';
import { clip } from '../kernel/redact.js';
import { RequestError } from '../run/request-error.js';
import type { RunRecord, RunSpec } from '../store/store.js';

export interface FolderRules {
  // Where the caller may let runs work; null: anywhere.
  readonly roots: readonly string[] | null;
  // A real path.
  readonly dataDir: string;
  readonly permission: RunSpec['permission'];
  // The run whose folder it is, where one is tried again.
  readonly beside: RunRecord | undefined;
}

// Returns the real path.
export function checkFolder(path: string, { roots, dataDir, permission, beside }: FolderRules): string {
  if (!isAbsolute(path))
    throw new RequestError('INVALID_ARGUMENT', `cwd cannot be ${JSON.stringify(path)}: it takes an absolute path`);
  if (path.includes('\0')) throw new RequestError('INVALID_ARGUMENT', 'cwd has a NUL character, which no path has');
  const real = nearestRealPath(path);
  // Before anything is said about whether it exists: outside of the roots that is nobody's business.
  if (roots !== null) checkRoots(path, real, roots);
  const found = statOrNull(real);
  if (!found) throw new RequestError('INVALID_ARGUMENT', `cwd ${clip(path, 300)} does not exist`);
  if (!found.isDirectory()) throw new RequestError('INVALID_ARGUMENT', `cwd ${path} is not a directory`);
  if (beside) return checkSame(beside, real);
  if (isWithin(real, dataDir))
    throw new RequestError(
      'PATH_NOT_ALLOWED',
      `${path} is in Parley's data directory (${dataDir}), where no run may work. Choose another folder, or give ` +
        'the run one of its own (--scratch, or no cwd).',
    );
  if (isWithin(dataDir, real) && permission !== 'full') {
    throw new RequestError(
      'PATH_NOT_ALLOWED',
      `${path} contains Parley's data directory (${dataDir}): an agent could read the tokens or change the ` +
        'journal there. Choose a subfolder, or allow it with the permission full.',
    );
  }
  return real;
}

// A path that the system refuses, such as one that is too long, leads nowhere.
function statOrNull(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

// `real` is the path with all links followed.
export function checkRoots(path: string, real: string, roots: readonly string[]): void {
  if (roots.some((root) => isWithin(real, realPathOf(root)))) return;
  const allowed = roots.length === 0 ? 'none is allowed' : roots.join(', ');
  throw new RequestError(
    'PATH_NOT_ALLOWED',
    `${path} is not within the folders where runs may work: ${allowed} (workspace_roots in config.json)`,
  );
}

// A run that is tried again works in the folder of the first one, and not where that folder leads now.
function checkSame({ run_id: runId, spec: { cwd } }: RunRecord, real: string): string {
  if (real !== cwd)
    throw new RequestError(
      'INVALID_ARGUMENT',
      `the folder of run ${runId}, ${cwd}, leads to ${real} now: it is another one`,
    );
  return real;
}
