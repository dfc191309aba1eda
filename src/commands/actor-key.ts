// Tells one actor from another, where what each of them has under way is limited.
import type { Actor } from '../store/store.js';

export function actorKey({ kind, name }: Actor): string {
  return `${kind} ${name}`;
}
