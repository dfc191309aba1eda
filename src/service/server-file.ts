// server.json names the process and the address that serve a data directory, while the server runs. Other commands
// connect through it.
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

// A killed server leaves its file behind: check whether the process is alive.
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
