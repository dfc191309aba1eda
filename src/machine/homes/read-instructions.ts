// Reads the file with a workspace's instructions for an engine that does not read it itself. The engine gets the text
// only: imports in it are not followed, and a link that leads out of the workspace is not read, because the text goes
// to the model service.
import { join } from 'node:path';
import { readText } from '../../files/read-file.js';
import { isWithin, realPathOf } from '../../files/real-path.js';
import type { Instructions } from '../engine-runtime.js';

// Longer files are left out as a whole.
const MAX_BYTES = 64 * 1024;

// `cwd` is a real path. Resolves to null if there are no instructions.
export async function readInstructions(cwd: string, name: string): Promise<Instructions | null> {
  const path = realPathOf(join(cwd, name));
  if (path === null) return null;
  if (!isWithin(path, cwd)) return { problem: `${name} is a link that leads out of the folder` };
  try {
    const text = (await readText(path, { maxBytes: MAX_BYTES }))?.trim() ?? '';
    return text === '' ? null : { text: `Instructions of the workspace, from ${name}:\n\n${text}\n` };
  } catch (error) {
    if (error instanceof Error) return { problem: error.message };
    throw error;
  }
}
