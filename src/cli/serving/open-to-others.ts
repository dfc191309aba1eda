// What of a data directory others on this machine could read or change, in words; null: nothing. Parley makes all of it
// for its owner alone, but a folder that was there before, or came back out of a backup, may be open. It is told and
// not mended: the modes may be meant so (a volume for a group).
import { statSync } from 'node:fs';
import { join } from 'node:path';

// Who may write into the folder or the settings decides which programs are started. Who reads the others has the token,
// or all that was said.
const WRITTEN = ['', 'config.json'];
const READ = ['token', 'parley.db', 'parley.log', 'runs'];
const WRITABLE_BY_OTHERS = 0o022;
const OPEN_TO_OTHERS = 0o077;

export function describeOpen(dataDir: string, platform: string): string | null {
  // Its modes say nothing there.
  if (platform === 'win32') return null;
  const isOpen = (name: string, bits: number): boolean => (modeOf(join(dataDir, name)) & bits) !== 0;
  const written = WRITTEN.filter((name) => isOpen(name, WRITABLE_BY_OTHERS)).map(
    (name) => `others may write to ${name || 'it'}, and so start programs as you`,
  );
  const read = READ.filter((name) => isOpen(name, OPEN_TO_OTHERS)).map((name) => `${name} is open to others`);
  const found = [...written, ...read];
  return found.length === 0
    ? null
    : `${dataDir}: ${found.join('; ')}. Choose a directory that is Parley's alone; of one that is, chmod -R go= ` +
        'makes it yours alone';
}

// What cannot be looked at is told elsewhere.
function modeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  } catch {
    return 0;
  }
}
