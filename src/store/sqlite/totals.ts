// Reads the totals, which triggers maintain (migrations.ts), and counts them again from the rows.
import { MOST_COUNTED, UNKNOWN, WARNING } from '../add-up-turns.js';
import {
  findWrongTotals,
  readState,
  type StateTotals,
  type Total,
  type TotalSubject,
  type WrongTotal,
} from '../totals.js';
import type { Database } from './open-database.js';

const COLUMNS = 'subject, engine, profile, measure, count';

export function readStates(db: Database, subject: Exclude<TotalSubject, 'turns'>): StateTotals {
  return db.prepare('SELECT measure, count FROM totals WHERE subject = ?').all(subject) as unknown as StateTotals;
}

export function countPending(db: Database, now: number): { pending: number; overdue: number } {
  const { overdue } = db
    .prepare(`SELECT COUNT(*) AS overdue FROM interactions WHERE state = 'pending' AND due_at < ?`)
    .get(now) as { overdue: number };
  return { pending: readState(readStates(db, 'interactions'), 'pending'), overdue };
}

// Damaged text counts as no warnings, and a damaged count as zero.
const WARNINGS =
  "json_each(iif(iif(json_valid(warnings_json), json_type(warnings_json), '') = 'object', warnings_json, '{}'))";
const isSound = (value: string): string => `typeof(${value}) = 'integer' AND ${value} BETWEEN 1 AND ${MOST_COUNTED}`;

const sumOfTurns = (measure: string, value: string, from = 'turns'): string =>
  `SELECT 'turns', engine, profile, ${measure}, SUM(${value}) FROM ${from} WHERE ${isSound(value)} GROUP BY 2, 3, 4`;

const TURNS = [
  `SELECT 'turns' AS subject, engine, profile, 'turns' AS measure, COUNT(*) AS count FROM turns GROUP BY 2, 3`,
  ...['units', 'parsed', 'fallbacks'].map((measure) => sumOfTurns(`'${measure}'`, measure)),
  sumOfTurns(`'${WARNING}' || warning.key`, 'warning.value', `turns, ${WARNINGS} AS warning`),
  `SELECT 'turns', engine, profile, '${UNKNOWN}' || reason_code, COUNT(*) FROM turns
    WHERE completion = 'unknown' GROUP BY 2, 3, 4`,
].join(' UNION ALL ');

const STATES = [
  `SELECT 'runs' AS subject, '' AS engine, '' AS profile, status AS measure, COUNT(*) AS count FROM runs GROUP BY 4`,
  `SELECT 'interactions', '', '', state, COUNT(*) FROM interactions WHERE state = 'pending' GROUP BY 4`,
  `SELECT 'deliveries', '', '', state, COUNT(*) FROM deliveries GROUP BY 4`,
].join(' UNION ALL ');

// Reads all rows of runs, turns and deliveries. One statement, because another process may be writing.
export function compareTotals(db: Database): WrongTotal[] {
  const query = `SELECT 1 AS stored, ${COLUMNS} FROM totals
    UNION ALL SELECT 0, ${COLUMNS} FROM (${STATES} UNION ALL ${TURNS})`;
  const rows = db.prepare(query).all() as unknown as (Total & { readonly stored: number })[];
  return findWrongTotals(
    rows.filter(({ stored }) => stored === 1),
    rows.filter(({ stored }) => stored === 0),
  );
}

// Counts of turns whose runs were deleted.
export function listDeletedTurns(db: Database): Total[] {
  const query = `SELECT ${COLUMNS.replace('count', 'SUM(count) AS count')} FROM (
      SELECT ${COLUMNS} FROM totals WHERE subject = 'turns'
      UNION ALL SELECT subject, engine, profile, measure, -count FROM (${TURNS}))
    GROUP BY 1, 2, 3, 4 HAVING SUM(count) > 0`;
  return db.prepare(query).all() as unknown as Total[];
}

// Within a transaction. Sets the totals of states, and raises those of turns to at least what the rows have: the rest
// is of deleted runs.
export function recountTotals(db: Database): void {
  const sound = `typeof(count) = 'integer' AND count BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`;
  db.exec(`DELETE FROM totals WHERE subject <> 'turns' OR NOT (${sound});
    INSERT INTO totals (${COLUMNS}) SELECT ${COLUMNS} FROM (${STATES});
    INSERT INTO totals (${COLUMNS}) SELECT ${COLUMNS} FROM (${TURNS}) WHERE true
      ON CONFLICT DO UPDATE SET count = MAX(count, excluded.count)`);
}
