// What is told in a sentence: a call that was refused, and data that cannot be used. Anything else is a defect of ours.
import { damageIn } from '../kernel/stored-json.js';
import { RequestError } from '../run/request-error.js';
import { explainSqlite } from '../store/sqlite/explain-sqlite.js';

export function refusalOf(error: unknown): RequestError | null {
  if (error instanceof RequestError) return error;
  const damage = damageIn(error);
  if (damage)
    return new RequestError(
      'DATA_DIR_UNUSABLE',
      `what is stored is damaged (parley verify --all looks at every run): ${damage.message}`,
    );
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR')) return null;
  // What the database refuses by its own rules was asked wrongly.
  if (/constraint|no such|syntax/i.test(error.message)) return null;
  const damaged = explainSqlite(error.message);
  return damaged === null
    ? new RequestError('STORE_UNAVAILABLE', `the database cannot be used: ${error.message}`)
    : new RequestError('DATA_DIR_UNUSABLE', damaged);
}
