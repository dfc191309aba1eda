// Reads the totals, which triggers maintain (connection/migrations.ts), and counts them again from the rows.
import { findWrongTotals, type StateTotals, type Total, type TotalSubject, type WrongTotal } from '../totals.js';
import type { Database, Statement } from './connection/database.js';

// A larger sum is damaged.
const SUM = 'LEAST(sum(count), 4611686018427387904)::bigint AS count';

const READ = `SELECT subject, engine, profile, measure, ${SUM} FROM parley.totals GROUP BY 1, 2, 3, 4
  HAVING sum(count) <> 0`;

export function readTotals(db: Database): Promise<Total[]> {
  return db.read<Total>({ name: 'read-totals', text: READ, values: [] });
}

export function statesStatement(subject: Exclude<TotalSubject, 'turns'>): Statement {
  return {
    name: 'read-states',
    text: `SELECT measure, ${SUM} FROM parley.totals WHERE subject = $1 GROUP BY measure`,
    values: [subject],
  };
}

export async function readStates(db: Database, subject: Exclude<TotalSubject, 'turns'>): Promise<StateTotals> {
  return db.read<StateTotals[number]>(statesStatement(subject));
}

// Reads all rows of runs, questions, deliveries and turns.
const COUNTED = `SELECT 'runs' AS subject, '' AS engine, '' AS profile, status AS measure, count(*) AS count
    FROM parley.runs GROUP BY status
  UNION ALL SELECT 'interactions', '', '', state, count(*)
    FROM parley.interactions WHERE state = 'pending' GROUP BY state
  UNION ALL SELECT 'deliveries', '', '', state, count(*) FROM parley.deliveries GROUP BY state
  UNION ALL SELECT 'turns', engine, profile, each.measure, sum(each.count)::bigint
    FROM parley.turns, LATERAL parley.measures_of(turns) AS each GROUP BY engine, profile, each.measure`;

// One statement, because hosts change rows meanwhile.
export async function compareTotals(db: Database): Promise<WrongTotal[]> {
  const rows = await db.read<Total & { readonly stored: boolean }>({
    name: 'compare-totals',
    text: `SELECT true AS stored, totals.* FROM (${READ}) AS totals
      UNION ALL SELECT false, counted.* FROM (${COUNTED}) AS counted`,
    values: [],
  });
  return findWrongTotals(
    rows.filter(({ stored }) => stored),
    rows.filter(({ stored }) => !stored),
  );
}

// Sets the totals of states, and raises those of turns to at least what the rows have: the rest is of deleted runs.
// Changes of other hosts wait until this is committed.
export async function recountTotals(db: Database): Promise<void> {
  const lock: Statement = {
    name: 'lock-totals',
    text: 'LOCK TABLE parley.totals IN SHARE ROW EXCLUSIVE MODE',
    values: [],
  };
  const replace: Statement = {
    name: 'recount-totals',
    text: `WITH replaced AS (DELETE FROM parley.totals RETURNING subject, engine, profile, measure, count),
      kept AS (
        SELECT subject, engine, profile, measure, sum(count) AS count FROM replaced WHERE subject = 'turns'
        GROUP BY 1, 2, 3, 4 HAVING sum(count) BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}
      )
      INSERT INTO parley.totals (subject, engine, profile, measure, count)
      SELECT subject, engine, profile, measure, max(count)::bigint
      FROM (SELECT * FROM kept UNION ALL ${COUNTED}) AS each GROUP BY 1, 2, 3, 4`,
    values: [],
  };
  await db.transact([lock], () => ({ write: [replace], answer: undefined }));
}
