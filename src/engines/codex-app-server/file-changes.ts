// The changes of a patch as the server tells them.
import { asObject, asString, type Json } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';

export interface FileChange {
  readonly path: string;
  readonly kind: RaspData['artifact.file.changed']['kind'];
  // Where the file goes, if it is moved.
  readonly moveTo: string | undefined;
  readonly diff: string | undefined;
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
    changes.push({ path, kind: type === 'add' || type === 'update' || type === 'delete' ? type : 'unknown', moveTo: asString(kind?.move_path), diff: asString(change?.diff) });
  }
  return changes;
}
