// In which life of the system this is: another text after each start of the machine. Null where the system does not
// say.
import { readFileSync } from 'node:fs';

export const BOOT_FILE = '/proc/sys/kernel/random/boot_id';

export function readBootId(path: string = BOOT_FILE): string | null {
  try {
    return readFileSync(path, 'utf8') || null;
  } catch {
    return null;
  }
}
