// Copies the files of a session into another home, to the same place within it, with those of the sessions that it goes on from.
// The engine may be writing: whole lines are copied.
import { chmodSync, closeSync, copyFileSync, fstatSync, ftruncateSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { findEngine } from '../engines/registry.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { sessionFiles } from './find-session.js';

const LF = 0x0a;
const BLOCK_BYTES = 64 * 1024;

// False: something of it is not there, or nothing of it is whole.
export function copySession(handle: EngineSessionHandle, home: string): boolean {
  const { basis } = findEngine(handle.engine).home.sessions;
  const known = new Set<string>();
  for (let id: string | null = handle.handle_value; id !== null && !known.has(id); ) {
    known.add(id);
    const firstLine = copyFiles({ ...handle, handle_value: id }, home);
    if (firstLine === null) return false;
    id = basis?.(firstLine) ?? null;
  }
  return true;
}

// Answers the first line of what was copied.
function copyFiles(handle: EngineSessionHandle, home: string): string | null {
  let firstLine: string | null = null;
  for (const path of sessionFiles(handle)) {
    const target = join(home, relative(handle.home ?? '', path));
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    firstLine = copyWhole(path, target) ?? firstLine;
  }
  return firstLine;
}

// The file only grows: what is copied is its beginning.
function copyWhole(from: string, to: string): string | null {
  try {
    copyFileSync(from, to);
  } catch (error) {
    // It went away between the look and the copy.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  chmodSync(to, 0o600);
  const file = openSync(to, 'r+');
  try {
    const end = endOfLines(file, fstatSync(file).size);
    ftruncateSync(file, end);
    return end === 0 ? null : readFirstLine(file);
  } finally {
    closeSync(file);
  }
}

// Behind the last LF, looked for from the back: a session may be larger than memory should be.
function endOfLines(file: number, size: number): number {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let end = size; end > 0; ) {
    const from = Math.max(0, end - BLOCK_BYTES);
    const at = block.subarray(0, readSync(file, block, 0, end - from, from)).lastIndexOf(LF);
    if (at >= 0) return from + at + 1;
    end = from;
  }
  return 0;
}

function readFirstLine(file: number): string {
  const blocks: Buffer[] = [];
  for (let from = 0; ; from += BLOCK_BYTES) {
    const block = Buffer.alloc(BLOCK_BYTES);
    const read = block.subarray(0, readSync(file, block, 0, BLOCK_BYTES, from));
    const at = read.indexOf(LF);
    blocks.push(at < 0 ? read : read.subarray(0, at));
    if (at >= 0 || read.length === 0) return Buffer.concat(blocks).toString('utf8');
  }
}
