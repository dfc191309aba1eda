// What the parsers made of the turns, one row a turn, and the sums over them by engine and profile.
import { addUpTurns, type NamedCount, type TurnSum } from '../add-up-turns.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import type { Database } from './open-database.js';

export function insertTurn(db: Database, run: { readonly run_id: string; readonly engine: string }, { attempt_number: attempt, parser, completion }: TurnCounts): void {
  db.prepare('INSERT INTO turns (run_id, attempt_number, engine, profile, units, parsed, fallbacks, warnings_json, completion, reason_code) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    .run(run.run_id, attempt, run.engine, parser.profile, parser.units, parser.parsed, parser.fallbacks, JSON.stringify(parser.warnings), completion.result, completion.reason_code);
}

export function sumTurns(db: Database, runId: string | undefined): ProfileTotals[] {
  const given = runId === undefined ? [] : [runId];
  const only = runId === undefined ? '1' : 'run_id = ?';
  const sums = db.prepare(`SELECT engine, profile, COUNT(*) AS turns, SUM(units) AS units, SUM(parsed) AS parsed, SUM(fallbacks) AS fallbacks
    FROM turns WHERE ${only} GROUP BY engine, profile ORDER BY engine, profile`).all(...given) as unknown as TurnSum[];
  const warnings = db.prepare(`SELECT engine, profile, warning.key AS name, SUM(warning.value) AS count
    FROM turns, json_each(warnings_json) AS warning WHERE ${only} GROUP BY engine, profile, name ORDER BY name`).all(...given) as unknown as NamedCount[];
  const unknown = db.prepare(`SELECT engine, profile, reason_code AS name, COUNT(*) AS count
    FROM turns WHERE completion = 'unknown' AND ${only} GROUP BY engine, profile, name ORDER BY name`).all(...given) as unknown as NamedCount[];
  return addUpTurns(sums, warnings, unknown);
}
