// Finds the data directory of a command and opens it for reading, which needs no lock.
import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { refusal } from '../run/request-error.js';
import type { Io } from './io.js';
import { openToRead, type ReadData } from './open-data.js';
import { texts } from './language/language.js';
import { explainReason } from '../messages/system-reason.js';

export interface DataOption {
  readonly data?: string;
}

export function dataDirOf({ data }: DataOption, io: Io): string {
  const named = data ?? io.env['PARLEY_DATA'];
  return named ? resolvePath(named, io) : defaultDataDir(io);
}

// Resolves a path that the person typed. An absolute path works even if the current folder was deleted.
export function resolvePath(path: string, { cwd }: Pick<Io, 'cwd'>): string {
  if (isAbsolute(path)) return resolve(path);
  if (cwd === null) throw refusal('INVALID_ARGUMENT.path_relative', { path: JSON.stringify(path) });
  return resolve(cwd, path);
}

// The folder for user data on this platform.
function defaultDataDir({ env, machine: { home, platform } }: Io): string {
  // A relative home would create the directory in the current folder.
  if (!isAbsolute(home) || (env['HOME'] !== undefined && !isAbsolute(env['HOME']) && platform !== 'win32'))
    throw refusal('DATA_DIR_UNUSABLE.home', { home: JSON.stringify(env['HOME'] ?? home) });
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'parley');
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(home, 'AppData', 'Local'), 'parley');
  // The XDG specification says to ignore a relative XDG_DATA_HOME.
  const shared = env['XDG_DATA_HOME'];
  return join(shared !== undefined && isAbsolute(shared) ? shared : join(home, '.local', 'share'), 'parley');
}

export async function openReader(options: DataOption, io: Io): Promise<ReadData | null> {
  const path = dataDirOf(options, io);
  checkFolder(path, constants.R_OK | constants.X_OK);
  return openToRead(path, io);
}

// Throws for a directory that exists but cannot be used: it must not look like a directory without runs.
export function checkFolder(path: string, mode: number): void {
  try {
    if (!statSync(path).isDirectory()) throw new Error(texts().say.isNotFolder);
    accessSync(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw refusal('DATA_DIR_UNUSABLE.other', { path, reason: explainReason(error) });
  }
}
