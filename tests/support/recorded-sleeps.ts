// The pauses of a program that a test starts, recorded instead of waited for.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const RECORD = new URL('record-sleeps.mjs', import.meta.url).href;

// The environment of the program, and the lengths of its pauses in milliseconds.
export function recordSleeps(folder: string): { env: Record<string, string>; lengths: () => number[] } {
  const file = join(folder, 'sleeps');
  return {
    env: { NODE_OPTIONS: `--import=${RECORD}`, PARLEY_TEST_SLEEPS: file },
    lengths: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : []),
  };
}
