// Copies the files of a session to the same place in another home, together with the sessions that it continues. Copies
// only complete lines, because the engine may be writing.
import { mkdir, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { findEngine } from '../../engines/registry.js';
import { openFile, openToAppend, readPieces, UnsafeFileError } from '../../files/read-file.js';
import type { EngineSessionHandle } from '../../run/session-handle.js';
import { sessionFiles } from './find-session.js';

const LF = 0x0a;
// The first line of a session contains its metadata. Longer lines are not read.
const MOST_OF_LINE = 4 * 1024 * 1024;

// Resolves to false if a file is missing or has no complete line.
export async function copySession(handle: EngineSessionHandle, home: string): Promise<boolean> {
  const { basis } = findEngine(handle.engine).home.sessions;
  const known = new Set<string>();
  for (let id: string | null = handle.handle_value; id !== null && !known.has(id);) {
    known.add(id);
    const firstLine = await copyFiles({ ...handle, handle_value: id }, home);
    if (firstLine === null) return false;
    id = basis?.(firstLine) ?? null;
  }
  return true;
}

// Resolves to the first line of the copied files.
async function copyFiles(handle: EngineSessionHandle, home: string): Promise<string | null> {
  let firstLine: string | null = null;
  for (const path of await sessionFiles(handle)) {
    const target = join(home, relative(handle.home ?? '', path));
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    firstLine = (await copyWhole(path, target)) ?? firstLine;
  }
  return firstLine;
}

// The file only grows, so the copy is a prefix of it. Resolves to null if the file was deleted or replaced meanwhile.
async function copyWhole(from: string, to: string): Promise<string | null> {
  const source = await openFile(from).catch((error: unknown) => {
    if (error instanceof UnsafeFileError) return null;
    throw error;
  });
  if (!source) return null;
  try {
    await rm(to, { recursive: true, force: true });
    const target = await openToAppend(to);
    try {
      return await copyLines(source, target);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

// Copies up to the last LF. Resolves to the first line, or null if there is none.
async function copyLines(source: FileHandle, target: FileHandle): Promise<string | null> {
  const first: Buffer[] = [];
  let isFirst = true;
  let bytes = 0;
  let end = 0;
  for await (const piece of readPieces(source, 0, (await source.stat()).size)) {
    const at = piece.indexOf(LF);
    if (isFirst && bytes < MOST_OF_LINE) first.push(at < 0 ? piece : piece.subarray(0, at));
    isFirst &&= at < 0;
    const last = piece.lastIndexOf(LF);
    if (last >= 0) end = bytes + last + 1;
    await target.writeFile(piece);
    bytes += piece.length;
  }
  await target.truncate(end);
  return end === 0 ? null : Buffer.concat(first).toString('utf8');
}
