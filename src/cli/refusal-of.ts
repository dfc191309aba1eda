// Turns an error into one that a person can act on: a refused call, or unusable data. Null for any other error, which
// is a defect of Parley.
import { damageIn } from '../kernel/stored-json.js';
import { RequestError, refusal } from '../run/request-error.js';
import { explainSqlite } from '../store/sqlite/explain-sqlite.js';

export function refusalOf(error: unknown): RequestError | null {
  if (error instanceof RequestError) return error;
  const damage = damageIn(error);
  if (damage) return refusal('DATA_DIR_UNUSABLE.damaged_data', { reason: damage.message });
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR')) return null;
  // A violated constraint or a wrong statement is a defect of Parley.
  if (/constraint|no such|syntax/i.test(error.message)) return null;
  const damaged = explainSqlite(error.message);
  return damaged === null
    ? refusal('STORE_UNAVAILABLE.database', { reason: error.message })
    : refusal('DATA_DIR_UNUSABLE.database', { problem: damaged });
}
