// Whether the agent of `parley run` may ask: a flag decides, else defaults.mode of config.json, else the terminal.
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { isObject, parseJson } from '../../kernel/json.js';
import type { ExecutionMode } from '../../run/attempt.js';
import type { Io } from '../io.js';

export interface ModeFlags {
  readonly interactive?: boolean;
  readonly auto?: boolean;
}

export function chooseMode(
  { interactive, auto }: ModeFlags,
  dataDir: string,
  { terminal }: Pick<Io, 'terminal'>,
): ExecutionMode {
  if (interactive || auto) return interactive ? 'interactive' : 'auto';
  // A person at a terminal can be asked; a script cannot.
  return readDefaultMode(dataDir) ?? (terminal.stdin && terminal.stdout ? 'interactive' : 'auto');
}

// Reads this setting alone, because the schema of all settings takes longer to load than the rest of the command. The
// worker or the server checks the whole file, so a file that cannot be used counts as empty here.
function readDefaultMode(dataDir: string): ExecutionMode | null {
  try {
    const config = parseJson(readTextSync(join(dataDir, 'config.json'), OWN_FILE) ?? '');
    const defaults = isObject(config) ? config['defaults'] : null;
    const mode = isObject(defaults) ? defaults['mode'] : null;
    return mode === 'interactive' || mode === 'auto' ? mode : null;
  } catch {
    return null;
  }
}
