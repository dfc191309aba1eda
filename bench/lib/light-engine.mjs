// Compiles light-engine.c with the C compiler of the machine.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./light-engine.c', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache', import.meta.url));

// Returns the path of the program.
export function buildLightEngine() {
  mkdirSync(CACHE, { recursive: true });
  const path = join(CACHE, 'light-engine');
  const { status, error } = spawnSync('cc', ['-O2', '-o', path, SOURCE], { stdio: 'inherit' });
  if (status !== 0)
    throw new Error(`the light engine needs a C compiler called cc: ${error?.message ?? `it ended with ${status}`}`);
  return path;
}
