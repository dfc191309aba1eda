// Checks the working directory of a new run. The path is resolved once, and the resolved path is both checked and
// stored: a link that is changed between the check and its use cannot redirect the run.
import { phrase } from '../messages/phrase.js';
import { lstatSync, type Stats } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isWithin, nearestRealPath, realPathOf } from '../files/real-path.js';
import { clip } from '../kernel/redact.js';
import { refusal } from '../run/request-error.js';
import type { RunRecord, RunSpec } from '../store/store.js';

export interface FolderRules {
  // The folders in which the caller may start runs; null: no restriction.
  readonly roots: readonly string[] | null;
  // A real path.
  readonly dataDir: string;
  readonly permission: RunSpec['permission'];
  // The run that is retried: the new run must work in the same folder.
  readonly beside: RunRecord | undefined;
}

// Returns the real path.
export function checkFolder(path: string, { roots, dataDir, permission, beside }: FolderRules): string {
  if (!isAbsolute(path)) throw refusal('INVALID_ARGUMENT.cwd_relative', { path: JSON.stringify(path) });
  if (path.includes('\0')) throw refusal('INVALID_ARGUMENT.cwd_nul');
  const real = nearestRealPath(path);
  // Checked first: a caller must not learn which paths exist outside the roots.
  if (roots !== null) checkRoots(path, real, roots);
  const stats = statOrNull(real);
  if (!stats) throw refusal('INVALID_ARGUMENT.cwd_missing', { path: clip(path, 300) });
  if (!stats.isDirectory()) throw refusal('INVALID_ARGUMENT.cwd_not_directory', { path });
  if (beside) return checkSame(beside, real);
  if (isWithin(real, dataDir)) throw refusal('PATH_NOT_ALLOWED.in_data_dir', { path, data_dir: dataDir });
  if (isWithin(dataDir, real) && permission !== 'full') {
    throw refusal('PATH_NOT_ALLOWED.contains_data_dir', { path, data_dir: dataDir });
  }
  return real;
}

// A path that the system refuses, for example because it is too long, counts as missing.
function statOrNull(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

// `real` is the path after all links are resolved.
export function checkRoots(path: string, real: string, roots: readonly string[]): void {
  if (roots.some((root) => isWithin(real, realPathOf(root)))) return;
  const allowed = roots.length === 0 ? phrase('no_roots') : roots.join(', ');
  throw refusal('PATH_NOT_ALLOWED.outside_roots', { path, allowed });
}

// A retry works in the folder of the first run. If the path now resolves to another folder, the retry is refused.
function checkSame({ run_id: runId, spec: { cwd } }: RunRecord, real: string): string {
  if (real !== cwd) throw refusal('INVALID_ARGUMENT.cwd_moved', { run: runId, path: cwd, real });
  return real;
}
