// Checks a data directory for parley doctor: whether it is usable, how many questions wait in it, and whether its
// database and files are damaged.
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RequestError } from '../../run/request-error.js';
import { operatorTokenFile, readOperatorToken } from '../../service/access/operator-token.js';
import { readServer } from '../../service/server-file.js';
import { listTokens } from '../../service/access/tokens.js';
import { checkIntegrity, openForReading, readWriter, type DataDir } from '../../store/sqlite/data-dir.js';
import type { Store } from '../../store/store.js';
import { formatSize } from '../../terminal/format-time.js';
import { checkAudit } from './check-audit.js';
import { explainPhrase, sayError, texts } from '../language/language.js';
import { RESTORE } from '../../store/sqlite/explain-sqlite.js';
import type { Finding } from './doctor.js';
import { CHECKED_BYTES, findDamage, tellIntegrity, type DamageOptions } from './find-damage.js';
import { refusalOf } from '../refusal-of.js';
import { isAlive } from '../writer-alive.js';
import { listFolder } from '../../files/list-folder.js';

export interface DataOptions extends DamageOptions {
  // The runs are in a database that several hosts share, and the directory has only files.
  readonly isShared: boolean;
}

export async function lookAtData(path: string, options: DataOptions): Promise<Finding[]> {
  const { isShared } = options;
  const there = nearest(path);
  const { bavail, bsize } = statfsSync(there);
  const { doctor: t } = texts();
  const room = t.free(formatSize(bavail * bsize));
  if (!statSync(there).isDirectory()) return [missing(t.notADirectory(there, t.otherDirectory))];
  if (!isWritable(there)) return [missing(t.notWritable(path, t.otherDirectory))];
  const isThere = existsSync(join(path, 'parley.db'));
  if (isThere && isShared) return [{ name: 'data', level: 'note', text: t.ownRuns(path, room) }];
  try {
    const data = isThere ? await openForReading(path) : null;
    if (data) {
      try {
        return await lookInside(data, { ...options, path, room });
      } finally {
        await data.close();
      }
    }
  } catch (error) {
    return [missing(sayError(refusalOf(error) ?? error))];
  }
  const folders = isShared ? 0 : await countRunFolders(path);
  if (folders > 0)
    return [
      missing(t.lostDatabase(path, folders, isThere ? t.databaseEmpty : t.databaseMissing, explainPhrase(RESTORE))),
    ];
  return [{ name: 'data', level: 'ok', text: t.nothingYet(path, room) }];
}

function missing(text: string): Finding {
  return { name: 'data', level: 'missing', text };
}

async function lookInside(
  { store, access }: DataDir,
  { path, room, ...look }: DamageOptions & { readonly path: string; readonly room: string },
): Promise<Finding[]> {
  const waiting = (await store.listPending({ limit: 1000 })).length;
  const audit = await checkAudit(access);
  const damage = await lookForDamage(path, store, look);
  const writer = readWriter(path);
  const server = readServer(path);
  const { doctor: t } = texts();
  const busy =
    writer && isAlive(writer) ? [server && isAlive(server) ? t.served(server.url) : t.writing(writer.pid)] : [];
  return [
    { name: 'data', level: 'ok', text: [path, t.waiting(waiting), ...busy, room].join(t.and) },
    ...damage,
    ...audit,
  ];
}

async function lookForDamage(path: string, store: Store, look: DamageOptions): Promise<Finding[]> {
  const { size } = statSync(join(path, 'parley.db'));
  const problems = look.full || size <= CHECKED_BYTES ? await checkIntegrity(path) : null;
  return [tellIntegrity(problems, size), ...(await findDamage(store, look))];
}

async function countRunFolders(path: string): Promise<number> {
  let count = 0;
  try {
    for await (const entries of listFolder(join(path, 'runs'), 1000))
      count += entries.filter(({ name }) => name.toString().startsWith('run_')).length;
  } catch {
    // Not there, or not a folder.
  }
  return count;
}

// Checks the token files that parley serve reads before it starts. `isPreset`: PARLEY_TOKEN replaces the operator token
// file.
export function lookAtTokens(path: string, { isPreset }: { readonly isPreset: boolean }): Finding[] {
  const findings = [explain('tokens', () => listTokens(path))];
  if (!isPreset && existsSync(operatorTokenFile(path))) findings.push(explain('token', () => readOperatorToken(path)));
  return findings.filter((finding) => finding !== null);
}

function explain(name: string, read: () => unknown): Finding | null {
  try {
    read();
    return null;
  } catch (error) {
    if (error instanceof RequestError || (error as NodeJS.ErrnoException).code !== undefined)
      return { name, level: 'missing', text: sayError(error) };
    throw error;
  }
}

// The nearest parent folder that exists.
function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path));
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
