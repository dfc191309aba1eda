// Tells who serves a data directory, and where: server.json, there while the server is. Other commands go through it.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import type { Writer } from '../store/sqlite/data-dir.js';

const FILE = 'server.json';

export interface ServerNote extends Writer {
  readonly url: string;
}

export function noteServer(dataDir: string, note: ServerNote): void {
  replaceFile(join(dataDir, FILE), `${JSON.stringify(note)}\n`);
}

// What was left by one that was killed is still there: ask whether its process is.
export function readServer(dataDir: string): ServerNote | null {
  try {
    return JSON.parse(readTextSync(join(dataDir, FILE), OWN_FILE) ?? 'null') as ServerNote | null;
  } catch {
    return null;
  }
}

export function forgetServer(dataDir: string): void {
  rmSync(join(dataDir, FILE), { force: true });
}
