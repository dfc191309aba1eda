// The key of an actor, under which limits count the work that each actor has in progress.
import type { Actor } from '../store/store.js';

export function actorKey({ kind, name }: Actor): string {
  return `${kind} ${name}`;
}
