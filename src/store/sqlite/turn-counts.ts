// Counts how much of the output of each turn the parser understood: one row per turn, sums by engine and profile, and
// the sums of deleted runs.
import {
  addUpTurns,
  MEASURES,
  MOST_COUNTED,
  UNKNOWN,
  WARNING,
  type DeletedCount,
  type NamedCount,
  type TurnSum,
} from '../add-up-turns.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import { isCount } from '../stored-shapes.js';
import type { Database } from './open-database.js';

// Damaged text counts as no warnings, so that one bad row does not fail the sum.
const WARNINGS = `json_each(iif(json_valid(warnings_json), warnings_json, '{}'))`;

const countOf = (value: string): string =>
  `iif(typeof(${value}) = 'integer' AND ${value} BETWEEN 0 AND ${MOST_COUNTED}, ${value}, 0)`;

export function insertTurn(
  db: Database,
  run: { readonly run_id: string; readonly engine: string },
  { attempt_number: attempt, parser, completion }: TurnCounts,
): void {
  db.prepare(
    'INSERT INTO turns (run_id, attempt_number, engine, profile, units, parsed, fallbacks, warnings_json, ' +
      'completion, reason_code) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(
    run.run_id,
    attempt,
    run.engine,
    parser.profile,
    parser.units,
    parser.parsed,
    parser.fallbacks,
    JSON.stringify(parser.warnings),
    completion.result,
    completion.reason_code,
  );
}

// Adds the turns of a run that is being deleted to those of deleted runs; in the transaction that deletes it.
export function keepTurns(db: Database, runId: string): void {
  const add = (counts: string): void =>
    void db
      .prepare(`INSERT INTO deleted_turns (engine, profile, measure, count) ${counts}
    ON CONFLICT (engine, profile, measure) DO UPDATE SET count = count + excluded.count`)
      .run(runId);
  for (const measure of MEASURES) {
    const sum = measure === 'turns' ? 'COUNT(*)' : `SUM(${countOf(measure)})`;
    add(`SELECT engine, profile, '${measure}', ${sum} FROM turns WHERE run_id = ? GROUP BY engine, profile`);
  }
  add(`SELECT engine, profile, '${WARNING}' || warning.key, SUM(${countOf('warning.value')})
    FROM turns, ${WARNINGS} AS warning WHERE run_id = ? GROUP BY engine, profile, warning.key`);
  add(`SELECT engine, profile, '${UNKNOWN}' || reason_code, COUNT(*)
    FROM turns WHERE run_id = ? AND completion = 'unknown' GROUP BY engine, profile, reason_code`);
}

export function listDeletedTurns(db: Database): DeletedCount[] {
  const rows = db
    .prepare('SELECT engine, profile, measure, count FROM deleted_turns')
    .all() as unknown as DeletedCount[];
  return rows.filter(({ count }) => isCount(count));
}

// The sum of one run is exact or fails: verify compares it with the events.
export function sumTurns(db: Database, runId: string | undefined): ProfileTotals[] {
  const parameters = runId === undefined ? [] : [runId];
  const only = runId === undefined ? '1' : 'run_id = ?';
  const sum = (value: string): string => `SUM(${runId === undefined ? countOf(value) : value})`;
  const sums = db
    .prepare(`SELECT engine, profile, COUNT(*) AS turns, ${sum('units')} AS units, ${sum('parsed')} AS parsed,
      ${sum('fallbacks')} AS fallbacks
    FROM turns WHERE ${only} GROUP BY engine, profile`)
    .all(...parameters) as unknown as TurnSum[];
  const warnings = db
    .prepare(`SELECT engine, profile, warning.key AS name, ${sum('warning.value')} AS count
    FROM turns, ${runId === undefined ? WARNINGS : 'json_each(warnings_json)'} AS warning WHERE ${only}
      GROUP BY engine, profile, name`)
    .all(...parameters) as unknown as NamedCount[];
  const unknown = db
    .prepare(`SELECT engine, profile, reason_code AS name, COUNT(*) AS count
    FROM turns WHERE completion = 'unknown' AND ${only} GROUP BY engine, profile, name`)
    .all(...parameters) as unknown as NamedCount[];
  return addUpTurns({ sums, warnings, unknown, deleted: runId === undefined ? listDeletedTurns(db) : [] });
}
