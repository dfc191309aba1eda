// Reads files in folders that agents, repositories or other programs can write; nothing else in Parley may read them. A
// planted file can neither hang the process nor fill its memory: only regular files are read, opened without blocking,
// up to a size limit, and only as far as the file reached when it was opened. Without `links: 'follow'` no link is
// followed, neither as the file itself nor as a folder of its path: the path must be the real path.
//
// Reading is asynchronous because a file may be large or a disk slow. The synchronous functions have the same guards;
// they are for small files of Parley's own that are read at startup.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  type Stats,
} from 'node:fs';
import type { Phrase } from '../kernel/fill-template.js';
import { phrase, textOf } from '../messages/phrase.js';
import { lstat, open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';

export interface FileRules {
  // A larger file is refused.
  readonly maxBytes: number;
  // follow: for files of the user or the operator, who may replace them with links to other places.
  readonly links?: 'refuse' | 'follow';
}

// A name need not be UTF-8.
export type FilePath = string | Buffer;

// The path is not a regular file, or the file is too large.
export class UnsafeFileError extends Error {
  override readonly name = 'UnsafeFileError';
  // The message for other languages.
  readonly phrase: Phrase;

  constructor(problem: Phrase) {
    super(textOf(problem));
    this.phrase = problem;
  }
}

export const SMALL_FILE: FileRules = { maxBytes: 1024 * 1024 };
export const OWN_FILE: FileRules = { maxBytes: 1024 * 1024, links: 'follow' };

const PIECE_BYTES = 256 * 1024;
const { O_APPEND, O_CREAT, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
const READ = O_RDONLY | O_NONBLOCK | O_NOCTTY;
const PRIVATE = 0o600;
// Linux adds this to the path of an open file that was deleted.
const DELETED = Buffer.from(' (deleted)');

// Resolves to null if there is no file.
export async function openFile(path: FilePath, links: FileRules['links'] = 'refuse'): Promise<FileHandle | null> {
  try {
    // Checked before opening, because opening a device can have side effects.
    if (links === 'follow' && !(await stat(path)).isFile()) throw notAFile(path);
    const file = await open(path, links === 'follow' ? READ : READ | O_NOFOLLOW);
    return await keepIfFile(file, path, links);
  } catch (error) {
    return nullIfMissing(error, path);
  }
}

export async function readBytes(path: string, { maxBytes, links }: FileRules): Promise<Buffer | null> {
  const file = await openFile(path, links);
  if (!file) return null;
  try {
    const { size } = await file.stat();
    checkSize(path, size, maxBytes);
    const bytes = Buffer.alloc(size);
    let at = 0;
    for (let read = -1; at < size && read !== 0; at += read)
      read = (await file.read(bytes, at, size - at, at)).bytesRead;
    return bytes.subarray(0, at);
  } finally {
    await file.close();
  }
}

export async function readText(path: string, rules: FileRules): Promise<string | null> {
  return (await readBytes(path, rules))?.toString('utf8') ?? null;
}

export function readTextSync(path: string, { maxBytes, links = 'refuse' }: FileRules): string | null {
  let file: number;
  try {
    if (links === 'follow' && !statSync(path).isFile()) throw notAFile(path);
    file = openSync(path, links === 'follow' ? READ : READ | O_NOFOLLOW);
  } catch (error) {
    return nullIfMissing(error, path);
  }
  try {
    const { size } = checkFileSync(file, path, links);
    checkSize(path, size, maxBytes);
    const bytes = Buffer.alloc(size);
    let at = 0;
    for (let read = -1; at < size && read !== 0; at += read) read = readSync(file, bytes, at, size - at, at);
    return bytes.toString('utf8', 0, at);
  } finally {
    closeSync(file);
  }
}

// Yields the bytes of an open file from `from` to `to` in chunks. Does not close the file.
export async function* readPieces(file: FileHandle, from: number, to: number): AsyncGenerator<Buffer, void> {
  for (let at = from; at < to;) {
    const wanted = Math.min(PIECE_BYTES, to - at);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

// Resolves to the size of a regular file; null if there is none.
export async function fileSize(path: string): Promise<number | null> {
  const stats = await lstat(path).catch(() => null);
  return stats?.isFile() ? stats.size : null;
}

// Opens a file for appending and creates it if it is missing. Refuses anything but a regular file, so that no byte is
// written through a link or into a pipe.
export async function openToAppend(path: string, { reads = false } = {}): Promise<FileHandle> {
  const flags = (reads ? O_RDWR : O_WRONLY) | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  try {
    return await keepIfFile(await open(path, flags, PRIVATE), path, 'refuse');
  } catch (error) {
    throw explain(error, path);
  }
}

export function openToAppendSync(path: string, { creates = true } = {}): number {
  try {
    const file = openSync(
      path,
      O_WRONLY | O_APPEND | (creates ? O_CREAT : 0) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
      PRIVATE,
    );
    try {
      checkFileSync(file, path, 'refuse');
      return file;
    } catch (error) {
      closeSync(file);
      throw error;
    }
  } catch (error) {
    throw explain(error, path);
  }
}

// Syncs the file to the disk. Resolves to false if there is none.
export async function syncFile(path: string): Promise<boolean> {
  const file = await openFile(path);
  if (!file) return false;
  try {
    await file.datasync();
    return true;
  } finally {
    await file.close();
  }
}

async function keepIfFile(file: FileHandle, path: FilePath, links: FileRules['links']): Promise<FileHandle> {
  try {
    const stats = await file.stat();
    if (!stats.isFile() || (links !== 'follow' && !(await isAt(file.fd, stats, path)))) throw notAFile(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function checkFileSync(file: number, path: string, links: FileRules['links']): Stats {
  const stats = fstatSync(file);
  if (!stats.isFile() || (links !== 'follow' && !isAtSync(file, stats, path))) throw notAFile(path);
  return stats;
}

// Linux reports the path of an open file and adds ` (deleted)` if the file was deleted or replaced after it was opened.
// A file whose real name ends in ` (deleted)` is in the same folder, so it is safe to read as well. Other systems do
// not report a path: there the path is resolved a second time, and a process that swaps folders fast enough can win
// that race.
async function isAt(fd: number, { dev, ino }: Stats, path: FilePath): Promise<boolean> {
  const bytes = Buffer.from(path);
  const opened = await readlink(`/proc/self/fd/${fd}`, { encoding: 'buffer' }).catch(() => null);
  if (opened !== null) return opened.equals(bytes) || opened.equals(Buffer.concat([bytes, DELETED]));
  const [named, real] = [
    await lstat(path).catch(() => null),
    await realpath(path, { encoding: 'buffer' }).catch(() => null),
  ];
  return real?.equals(bytes) === true && named?.ino === ino && named.dev === dev;
}

function isAtSync(fd: number, { dev, ino }: Stats, path: string): boolean {
  try {
    const opened = readlinkSync(`/proc/self/fd/${fd}`);
    return opened === path || opened === `${path}${DELETED.toString()}`;
  } catch {
    const named = lstatSync(path, { throwIfNoEntry: false });
    return named?.ino === ino && named.dev === dev && realpathSync(path) === path;
  }
}

function checkSize(path: string, size: number, maxBytes: number): void {
  if (size > maxBytes) throw new UnsafeFileError(phrase('large_file', { path, size, limit: maxBytes }));
}

function notAFile(path: FilePath): UnsafeFileError {
  return new UnsafeFileError(phrase('odd_file', { path: path.toString() }));
}

function nullIfMissing(error: unknown, path: FilePath): null {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return null;
  throw explain(error, path);
}

// Callers need not distinguish the system errors for a link (ELOOP), a folder and a socket, so all become one error.
function explain(error: unknown, path: FilePath): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ELOOP', 'EISDIR', 'ENXIO', 'ENODEV', 'EOPNOTSUPP'].includes(code) ? notAFile(path) : error;
}
