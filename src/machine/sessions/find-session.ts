// Finds the files of a session in the engine's home. Starts no process.
import { join } from 'node:path';
import { findEngine } from '../../engines/registry.js';
import { listFolder, textOf } from '../../files/list-folder.js';
import { openFile, readPieces } from '../../files/read-file.js';
import type { EngineSessionHandle } from '../../run/session-handle.js';

// Bounds on the search, because an agent can put any number of files of any size into its home.
const MOST_ENTRIES = 100_000;
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_DEPTH = 32;

export async function hasSession(handle: EngineSessionHandle): Promise<boolean> {
  for await (const _path of findFiles(handle)) return true;
  return false;
}

export async function sessionFiles(handle: EngineSessionHandle): Promise<string[]> {
  const paths: string[] = [];
  for await (const path of findFiles(handle)) paths.push(path);
  return paths;
}

async function* findFiles({ engine, handle_value: id, home }: EngineSessionHandle): AsyncGenerator<string, void> {
  if (home === null) return;
  const { folder, holds } = findEngine(engine).home.sessions;
  for await (const path of walk(join(home, folder), { left: MOST_ENTRIES })) {
    const held = holds(path, id);
    if (held === 'by name' || (held === 'if mentioned' && (await mentions(path, Buffer.from(id))))) yield path;
  }
}

async function* walk(folder: string, bounds: { left: number }, depth = 0): AsyncGenerator<string, void> {
  if (depth > MOST_DEPTH) return;
  try {
    for await (const entries of listFolder(folder, 1000)) {
      for (const { name, kind } of entries) {
        bounds.left -= 1;
        if (bounds.left < 0) return;
        const text = textOf(name);
        if (text === null) continue;
        if (kind === 'folder') yield* walk(join(folder, text), bounds, depth + 1);
        else if (kind === 'file') yield join(folder, text);
      }
    }
  } catch (error) {
    // The folder does not exist, or was deleted meanwhile.
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
  }
}

async function mentions(path: string, id: Buffer): Promise<boolean> {
  // A file that was deleted or replaced meanwhile contains no session.
  const file = await openFile(path).catch(() => null);
  if (!file) return false;
  try {
    let rest = Buffer.alloc(0);
    for await (const piece of readPieces(file, 0, Math.min((await file.stat()).size, MOST_BYTES))) {
      const bytes = Buffer.concat([rest, piece]);
      if (bytes.includes(id)) return true;
      rest = bytes.subarray(Math.max(0, bytes.length - id.length + 1));
    }
    return false;
  } finally {
    await file.close();
  }
}
