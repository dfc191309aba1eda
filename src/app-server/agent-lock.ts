// Who has an instance: one process at a time, told by a file with its pid and when it began. One that is dead has nothing.
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStartTime } from '../process/process-table.js';
import { AppServerError } from './app-server-error.js';

// Answers how to give it back.
export function lockAgent(folder: string, pid: number, unique: string): () => void {
  const lock = join(folder, 'owner');
  const draft = `${lock}.${unique}`;
  const text = `${pid} ${readStartTime(pid)}\n`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    while (!tryLink(draft, lock)) removeDead(lock, `${draft}.dead`);
  } finally {
    rmSync(draft);
  }
  let held = true;
  // Once: afterwards it may be another's.
  return () => {
    if (held) rmSync(lock, { force: true });
    held = false;
  };
}

// A link is made whole or not at all.
function tryLink(draft: string, lock: string): boolean {
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

function removeDead(lock: string, aside: string): void {
  const found = readIf(lock);
  if (found === null) return;
  const [pid = '', since = ''] = found.trim().split(' ');
  if (since !== '' && readStartTime(Number(pid)) === since) throw new AppServerError('in_use', `${lock.slice(0, -'/owner'.length)} is in use by process ${pid}`);
  // Moved before it is removed: another may have taken the place of the dead one since.
  if (!moveIf(lock, aside)) return;
  if (readIf(aside) !== found) tryLink(aside, lock);
  rmSync(aside);
}

function moveIf(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (!existsSync(from)) return false;
    throw error;
  }
}

function readIf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!existsSync(path)) return null;
    throw error;
  }
}
