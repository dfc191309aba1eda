// What a path leads to when all links are followed; null if it leads nowhere, or cannot be looked at.
import { realpathSync } from 'node:fs';

export function realPathOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
