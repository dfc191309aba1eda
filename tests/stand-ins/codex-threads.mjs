// How Codex names its threads and their files under CODEX_HOME.
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { randomBytes } from 'node:crypto';

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const codexHome = resolve(process.env.CODEX_HOME ?? join(homedir(), '.codex'));
export const SESSIONS = join(codexHome, 'sessions');

// A thread id is a UUID of version 7.
export function newId() {
  const hex = Date.now().toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

// The path of a thread that starts now.
export function newRollout(id, now = new Date().toISOString()) {
  return join(...now.slice(0, 10).split('-'), `rollout-${now.slice(0, 19).replaceAll(':', '-')}-${id}.jsonl`);
}

export function listRollouts() {
  if (!existsSync(SESSIONS)) return [];
  return readdirSync(SESSIONS, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.jsonl'))
    .map((path) => join(SESSIONS, path));
}

export function findRollout(id) {
  return listRollouts().find((path) => path.endsWith(`-${id.toLowerCase()}.jsonl`));
}
