// Remembers the file changes of patches, as the server reports them.
import { asObject, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';

export interface FileChange {
  readonly path: string;
  readonly kind: RaspData['artifact.file.changed']['kind'];
  // The new path, if the file is moved.
  readonly moveTo: string | undefined;
  readonly diff: string | undefined;
}

// The model chooses the id of an item, so another thread may use the same one.
export function itemKey(threadId: Json | undefined, itemId: string): string {
  return `${asString(threadId) ?? ''} ${itemId}`;
}

// Stores the changes that an item starts with. An item that starts twice counts as changed.
export function rememberItem(items: Map<string, JsonObject>, key: string, body: JsonObject): void {
  const { changes: _changes, ...rest } = body;
  items.set(key, items.has(key) ? rest : body);
}

// The current state of a patch; null if it is unknown, so the patch was not shown.
export function rememberChanges(items: Map<string, JsonObject>, key: string, changes: Json | undefined): void {
  const body = items.get(key);
  if (!body) return;
  const { changes: _before, ...rest } = body;
  items.set(key, readChanges(changes) ? { ...rest, changes: changes ?? null } : rest);
}

export function readChanges(value: Json | undefined): FileChange[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const changes: FileChange[] = [];
  for (const entry of value) {
    const change = asObject(entry);
    const path = asString(change?.path);
    if (path === undefined) return undefined;
    const kind = asObject(change?.kind);
    const type = kind?.type;
    changes.push({
      path,
      kind: type === 'add' || type === 'update' || type === 'delete' ? type : 'unknown',
      moveTo: asString(kind?.move_path),
      diff: asString(change?.diff),
    });
  }
  return changes;
}
