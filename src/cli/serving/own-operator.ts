// The operator token of this data directory, as a database that hosts share knows it.
import { RequestError, refusal } from '../../run/request-error.js';
import { operatorToken } from '../../service/access/operator-token.js';
import { hashToken } from '../../service/access/tokens.js';
import type { AuditTrace } from '../../store/audit.js';
import type { Database } from '../../store/postgres/connection/database.js';
import type { Registration } from '../../store/postgres/access/operator-tokens.js';
import { identifyDirectory } from '../../store/postgres/hosts/site.js';
import type { Io } from '../io.js';
import { hostNameOf } from '../open-data.js';

export function registrationOf(path: string, io: Io): Registration {
  return {
    directory: withWritableDirectory(path, () => identifyDirectory(path)),
    user: io.machine.userName,
    host: hostNameOf(io),
    readSha256: () => hashToken(withWritableDirectory(path, () => operatorToken(path))),
  };
}

export function operatorTrace(now: number, io: Io): AuditTrace {
  return { at: now, actor: { kind: 'user', name: io.machine.userName }, address: null };
}

// For a command that calls a server: creates the token if it does not exist, and registers it.
export async function registeredToken(database: Database, path: string, io: Io): Promise<string> {
  const { registerOperator } = await import('../../store/postgres/access/operator-tokens.js');
  await registerOperator(database, registrationOf(path, io), operatorTrace(io.clock.now(), io));
  return operatorToken(path);
}

function withWritableDirectory<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof RequestError || code === undefined) throw error;
    throw refusal('DATA_DIR_UNUSABLE.operator_token', { path, code });
  }
}
