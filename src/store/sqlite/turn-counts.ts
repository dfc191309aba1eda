// Counts how much of the output of each turn the parser understood: one row per turn, and sums by engine and profile.
import { addUpTurns, groupByProfile, type NamedCount, type TurnCount, type TurnSum } from '../add-up-turns.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import { isCount } from '../stored-shapes.js';
import type { Database } from './open-database.js';

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

// The sum of one run is exact or fails: verify compares it with the events. The sum of all runs is that of the totals.
export function sumTurns(db: Database, runId: string | undefined): ProfileTotals[] {
  if (runId === undefined) return groupByProfile(listTurnTotals(db));
  const sums = db
    .prepare(`SELECT engine, profile, COUNT(*) AS turns, SUM(units) AS units, SUM(parsed) AS parsed,
      SUM(fallbacks) AS fallbacks
    FROM turns WHERE run_id = ? GROUP BY engine, profile`)
    .all(runId) as unknown as TurnSum[];
  const warnings = db
    .prepare(`SELECT engine, profile, warning.key AS name, SUM(warning.value) AS count
    FROM turns, json_each(warnings_json) AS warning WHERE run_id = ? GROUP BY engine, profile, name`)
    .all(runId) as unknown as NamedCount[];
  const unknown = db
    .prepare(`SELECT engine, profile, reason_code AS name, COUNT(*) AS count
    FROM turns WHERE completion = 'unknown' AND run_id = ? GROUP BY engine, profile, name`)
    .all(runId) as unknown as NamedCount[];
  return addUpTurns({ sums, warnings, unknown });
}

// Leaves out damaged totals.
function listTurnTotals(db: Database): TurnCount[] {
  const rows = db
    .prepare(`SELECT engine, profile, measure, count FROM totals WHERE subject = 'turns'`)
    .all() as unknown as TurnCount[];
  return rows.filter(({ count }) => isCount(count));
}
