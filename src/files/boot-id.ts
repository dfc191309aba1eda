// Identifies the current boot of the machine: the id changes with each boot. Null on systems that do not provide one.
import { readFileSync } from 'node:fs';

export const BOOT_FILE = '/proc/sys/kernel/random/boot_id';

export function readBootId(path: string = BOOT_FILE): string | null {
  try {
    return readFileSync(path, 'utf8') || null;
  } catch {
    return null;
  }
}
