// What the parsers made of the turns, one row a turn, and the sums over them by engine and profile.
import { addUpTurns, type NamedCount, type TurnSum } from '../add-up-turns.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import type { Composition } from './compose.js';
import type { Database } from './database.js';

export function addTurn(to: Composition, runId: string, engine: string, { attempt_number: attempt, parser, completion }: TurnCounts): void {
  to.add('t', (param) => `INSERT INTO parley.turns (run_id, attempt_number, engine, profile, units, parsed, fallbacks, warnings_json, completion, reason_code)
    VALUES (${param(runId, 'text')}, ${param(attempt, 'integer')}, ${param(engine, 'text')}, ${param(parser.profile, 'text')}, ${param(parser.units, 'bigint')}, ${param(parser.parsed, 'bigint')},
      ${param(parser.fallbacks, 'bigint')}, ${param(JSON.stringify(parser.warnings), 'text')}, ${param(completion.result, 'text')}, ${param(completion.reason_code, 'text')})`);
}

const ONLY = '($1::text IS NULL OR run_id = $1::text)';

export async function sumTurns(db: Database, runId: string | undefined): Promise<ProfileTotals[]> {
  const values = [runId ?? null];
  const [sums, warnings, unknown] = await Promise.all([
    db.read<TurnSum>({ name: 'turn-sums', values, text: `SELECT engine, profile, count(*) AS turns, sum(units)::bigint AS units, sum(parsed)::bigint AS parsed, sum(fallbacks)::bigint AS fallbacks
      FROM parley.turns WHERE ${ONLY} GROUP BY engine, profile ORDER BY engine, profile` }),
    db.read<NamedCount>({ name: 'turn-warnings', values, text: `SELECT engine, profile, warning.key COLLATE "C" AS name, sum(warning.value::bigint)::bigint AS count
      FROM parley.turns, json_each_text(warnings_json::json) AS warning WHERE ${ONLY} GROUP BY engine, profile, name ORDER BY name` }),
    db.read<NamedCount>({ name: 'turn-unknown', values, text: `SELECT engine, profile, reason_code AS name, count(*) AS count
      FROM parley.turns WHERE completion = 'unknown' AND ${ONLY} GROUP BY engine, profile, name ORDER BY name` }),
  ]);
  return addUpTurns(sums, warnings, unknown);
}
