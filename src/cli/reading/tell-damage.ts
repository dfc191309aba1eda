// Reports damage of a run on stderr, briefly: a journal may be damaged in a thousand places.
import { safeText } from '../../terminal/safe-text.js';
import type { Io } from '../io.js';

const SHOWN = 3;

export function tellDamage(damage: readonly string[], io: Io): void {
  for (const each of damage.slice(0, SHOWN)) io.stderr.write(`parley: damaged: ${safeText(each)}\n`);
  const more = damage.length - SHOWN;
  if (more > 0) io.stderr.write(`parley: and ${more} more. With --json, parley show names all of them.\n`);
}
