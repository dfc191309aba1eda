// Where the data of a command is, and opening it to look, which always works.
import { join, resolve } from 'node:path';
import { openForReading, type DataDir } from '../store/sqlite/data-dir.js';
import type { Io } from './io.js';

export interface DataOption {
  readonly data?: string;
}

export function dataDirOf({ data }: DataOption, io: Io): string {
  const named = data ?? io.env['PARLEY_DATA'];
  return named === undefined || named === '' ? defaultDataDir(io) : resolve(io.cwd, named);
}

// Where programs of this platform keep what belongs to a user.
function defaultDataDir({ env, machine: { home, platform } }: Io): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'parley');
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(home, 'AppData', 'Local'), 'parley');
  return join(env['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'parley');
}

export function openReader(options: DataOption, io: Io): Promise<DataDir | null> {
  return openForReading(dataDirOf(options, io));
}
