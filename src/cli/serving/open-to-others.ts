// Describes which parts of a data directory other users of this machine can read or change; null if none. Parley
// creates everything for its owner only, but an existing or restored folder may be open. This is reported and not
// fixed, because the modes may be intended (a volume for a group).
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Texts } from '../language/en.js';

// Write access to the folder or the settings decides which programs are started. Read access to the others reveals the
// token or the conversations.
const WRITTEN = ['', 'config.json'];
const READ = ['token', 'parley.db', 'parley.log', 'runs'];
const WRITABLE_BY_OTHERS = 0o022;
const OPEN_TO_OTHERS = 0o077;

export function describeOpen(dataDir: string, platform: string, t: Texts['doctor']): string | null {
  // File modes mean nothing on Windows.
  if (platform === 'win32') return null;
  const isOpen = (name: string, bits: number): boolean => (modeOf(join(dataDir, name)) & bits) !== 0;
  const written = WRITTEN.filter((name) => isOpen(name, WRITABLE_BY_OTHERS)).map((name) =>
    name === '' ? t.directoryWrittenByOthers : t.writtenByOthers(name),
  );
  const read = READ.filter((name) => isOpen(name, OPEN_TO_OTHERS)).map(t.readByOthers);
  const open = [...written, ...read];
  return open.length === 0 ? null : t.openToOthers(dataDir, open.join(t.next));
}

// A path that cannot be read is reported elsewhere.
function modeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  } catch {
    return 0;
  }
}
