// Where the data of a command is, and opening it to look, which always works.
import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { RequestError } from '../run/request-error.js';
import type { Io } from './io.js';
import { openToRead, type ReadData } from './open-data.js';
import { reasonOf } from '../kernel/system-error.js';

export interface DataOption {
  readonly data?: string;
}

export function dataDirOf({ data }: DataOption, io: Io): string {
  const named = data ?? io.env['PARLEY_DATA'];
  return named === undefined || named === '' ? defaultDataDir(io) : resolvePath(named, io);
}

// A path as the person gave it. Absolute ones work also where the current folder was deleted.
export function resolvePath(path: string, { cwd }: Pick<Io, 'cwd'>): string {
  if (isAbsolute(path)) return resolve(path);
  if (cwd === null)
    throw new RequestError(
      'INVALID_ARGUMENT',
      `The current folder was deleted, so ${JSON.stringify(path)} leads nowhere. Change to another folder (cd), ` +
        'or give an absolute path.',
    );
  return resolve(cwd, path);
}

// Where programs of this platform keep what belongs to a user.
function defaultDataDir({ env, machine: { home, platform } }: Io): string {
  // Else it would be made in the current folder.
  if (!isAbsolute(home) || (env['HOME'] !== undefined && !isAbsolute(env['HOME']) && platform !== 'win32'))
    throw new RequestError(
      'DATA_DIR_UNUSABLE',
      `HOME is ${JSON.stringify(env['HOME'] ?? home)}, which is not an absolute path, so there is no default data ` +
        'directory. Set HOME, or name a directory with --data or PARLEY_DATA.',
    );
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'parley');
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(home, 'AppData', 'Local'), 'parley');
  // A relative XDG_DATA_HOME is to be ignored, by its specification.
  const shared = env['XDG_DATA_HOME'];
  return join(shared !== undefined && isAbsolute(shared) ? shared : join(home, '.local', 'share'), 'parley');
}

export async function openReader(options: DataOption, io: Io): Promise<ReadData | null> {
  const path = dataDirOf(options, io);
  checkFolder(path, constants.R_OK | constants.X_OK);
  return openToRead(path, io);
}

// What is there but cannot be used is told; it must not look like a directory without runs.
export function checkFolder(path: string, mode: number): void {
  try {
    if (!statSync(path).isDirectory()) throw new Error('it is not a folder');
    accessSync(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new RequestError('DATA_DIR_UNUSABLE', `the data directory ${path} cannot be used: ${reasonOf(error)}`);
  }
}
