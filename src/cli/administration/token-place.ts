// Where tokens are changed: the file of a data directory, or the database that hosts share. A revocation in a data
// directory takes effect even if it cannot be recorded.
import { mkdirSync } from 'node:fs';
import type { AccessStore } from '../../store/access-store.js';
import type { AuditEntry, AuditTrace } from '../../store/audit.js';
import type { Database } from '../../store/postgres/connection/database.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import type { Io } from '../io.js';
import { databaseUrl, openAccessTables } from '../open-data.js';

// What a change of tokens works on: the file of a data directory, or the database that hosts share.
export interface Place {
  readonly path: string;
  readonly access: AccessStore;
  readonly database: Database | null;
  readonly trace: AuditTrace;
}

export async function withPlace<T>(options: DataOption, io: Io, work: (place: Place) => Promise<T>): Promise<T> {
  const path = dataDirOf(options, io);
  if (databaseUrl(io) === null) mkdirSync(path, { recursive: true, mode: 0o700 });
  const { access, database, close } = await openAccessTables(path, io);
  try {
    return await work({
      path,
      access,
      database,
      trace: { at: io.clock.now(), actor: { kind: 'user', name: io.machine.userName }, address: null },
    });
  } finally {
    await close();
  }
}

// For revocations. Tokens of a data directory are in a file: they are revoked even if its database cannot be opened,
// and the reason is reported as the problem of everything that should be stored there.
export async function withFiles<T>(options: DataOption, io: Io, work: (place: Place) => Promise<T>): Promise<T> {
  let isOpen = false;
  const note = (place: Place): Promise<T> => {
    isOpen = true;
    return work(place);
  };
  try {
    return await withPlace(options, io, note);
  } catch (error) {
    if (isOpen || databaseUrl(io) !== null) throw error;
    const refuse = (): Promise<never> => Promise.reject(error as Error);
    const access = { appendAudit: refuse, forgetToken: refuse } as unknown as AccessStore;
    return work({
      path: dataDirOf(options, io),
      access,
      database: null,
      trace: { at: io.clock.now(), actor: null, address: null },
    });
  }
}

export interface Revocation {
  readonly entry: AuditEntry;
  // The hash of the revoked token, if it is known.
  readonly sha256: string | null;
  readonly revoke: () => void;
}

// Revokes a token of a data directory in any case; returns why that could not be recorded, or null.
export async function revokeHere({ access }: Place, { entry, sha256, revoke }: Revocation): Promise<unknown> {
  const problems: unknown[] = [];
  const note = (error: unknown): void => void problems.push(error);
  await access.appendAudit(entry).catch(note);
  revoke();
  if (sha256 !== null) await access.forgetToken(sha256).catch(note);
  return problems[0] ?? null;
}
