// A session of the rehearsal: one small file, bound to no directory, whole at any moment. It outlives its process,
// however that ends. Nothing else is ever written.
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { isObject, parseJson } from '../kernel/json.js';
import type { Part } from './scene.js';

export interface Session {
  readonly id: string;
  // The last turn ended with a question: what comes next is its answer.
  readonly asked: boolean;
  // What of a script is still to be played.
  readonly script: readonly Part[];
  // Commands that were approved for the whole session.
  readonly allowed: readonly string[];
}

// Also keeps an id from being a path.
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

// A new session, or undefined if there is one of that id, or the id is none.
export function createSession(home: string, id: string): Session | undefined {
  if (!UUID.test(id) || existsSync(fileOf(home, id))) return undefined;
  const session: Session = { id, asked: false, script: [], allowed: [] };
  saveSession(home, session);
  return session;
}

// The session of that id, or undefined if there is none that can be read.
export function loadSession(home: string, id: string): Session | undefined {
  const text = UUID.test(id) ? readTextSync(fileOf(home, id), OWN_FILE) : null;
  if (text === null) return undefined;
  const stored = parseJson(text);
  return isObject(stored) && Array.isArray(stored.script) && Array.isArray(stored.allowed)
    ? (stored as unknown as Session)
    : undefined;
}

export function saveSession(home: string, session: Session): void {
  const file = fileOf(home, session.id);
  mkdirSync(folderOf(home), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(session)}\n`);
  renameSync(`${file}.new`, file);
}

function folderOf(home: string): string {
  return join(home, '.parley-rehearsal', 'sessions');
}

function fileOf(home: string, id: string): string {
  return join(folderOf(home), `${id.toLowerCase()}.json`);
}
