// Replaces a file: whole or not at all, also when the power fails, and for nobody else to read.
import { closeSync, fdatasyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export function replaceFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeFileSync(file, content);
    // On the disk before it has its name: else the name may outlive a power cut, and what should be in it not.
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
}
