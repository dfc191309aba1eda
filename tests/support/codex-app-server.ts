// Recorded output of real servers (0.166.0). Leaves out lines that the recorder had truncated, and the pieces of a
// message whose end was such a line; if a path was replaced, the pieces are those of the whole message.
import { readdirSync, readFileSync } from 'node:fs';
import { findEngine } from '../../src/engines/registry.js';

export const APP_SERVER = findEngine('codex-app-server');

const folder = new URL('../golden/codex-app-server/', import.meta.url);

export const RECORDINGS: readonly string[] = readdirSync(folder).toSorted();

export function loadRecording(name: string): Buffer {
  return readFileSync(new URL(`${name}/stdout.bin`, folder));
}
