// Is a session really there? Told by the files of the engine's home alone; nothing is started.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findEngine } from '../engines/registry.js';
import type { EngineSessionHandle } from '../run/session-handle.js';

export function hasSession(handle: EngineSessionHandle): boolean {
  return sessionFiles(handle).length > 0;
}

export function sessionFiles({ engine, handle_value: id, home }: EngineSessionHandle): string[] {
  if (home === null) return [];
  const { folder, holds } = findEngine(engine).home.sessions;
  return listFiles(join(home, folder)).filter((path) => {
    const held = holds(path, id);
    return held === 'by name' || (held === 'if mentioned' && mentions(path, id));
  });
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [];
  }
}

function mentions(path: string, id: string): boolean {
  try {
    return readFileSync(path).includes(id);
  } catch {
    // It went away between the list and the look.
    return false;
  }
}
