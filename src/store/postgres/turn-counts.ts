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
import { damageText } from '../../kernel/damage-texts.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import type { Composition } from './connection/compose.js';
import type { Database } from './connection/database.js';

export function addTurn(
  to: Composition,
  { attempt_number: attempt, parser, completion }: TurnCounts,
  { runId, engine }: { readonly runId: string; readonly engine: string },
): void {
  to.add(
    't',
    (
      param,
    ) => `INSERT INTO parley.turns (run_id, attempt_number, engine, profile, units, parsed, fallbacks, warnings_json,
      completion, reason_code)
    VALUES (${param(runId, 'text')}, ${param(attempt, 'integer')}, ${param(engine, 'text')},
      ${param(parser.profile, 'text')}, ${param(parser.units, 'bigint')}, ${param(parser.parsed, 'bigint')},
      ${param(parser.fallbacks, 'bigint')}, ${param(JSON.stringify(parser.warnings), 'text')},
        ${param(completion.result, 'text')}, ${param(completion.reason_code, 'text')})`,
  );
}

// A damaged count is read as 0; with `exact`, the sum is that of the stored numbers, or fails.
function sumOf(value: string, exact = 'false'): string {
  return `COALESCE(sum(${value}) FILTER (WHERE ${exact} OR ${value} BETWEEN 0 AND ${MOST_COUNTED}), 0)::bigint`;
}

// A damaged sum stays damaged, without an overflow.
export const ADD_DELETED =
  'ON CONFLICT (engine, profile, measure) DO UPDATE SET count = LEAST(deleted_turns.count, 4611686018427387904) + ' +
  'excluded.count';

// Adds the turns of a run that is being deleted to those of deleted runs; in the statement that deletes it. One INSERT,
// because a statement may not change a row twice.
export function keepTurns(to: Composition, runId: string): void {
  to.add('t', (param) => {
    const id = param(runId, 'text');
    const counts = [
      ...MEASURES.map(
        (measure) =>
          `SELECT engine, profile, '${measure}', ${measure === 'turns' ? '1' : measure} FROM parley.turns
            WHERE run_id = ${id}`,
      ),
      `SELECT engine, profile, '${WARNING}' || name, count FROM parley.turns, parley.count_warnings(warnings_json)
        WHERE run_id = ${id}`,
      `SELECT engine, profile, '${UNKNOWN}' || reason_code, 1 FROM parley.turns
        WHERE run_id = ${id} AND completion = 'unknown'`,
    ];
    return `INSERT INTO parley.deleted_turns (engine, profile, measure, count)
      SELECT engine, profile, measure, ${sumOf('count')}
      FROM (${counts.join(' UNION ALL ')}) AS each (engine, profile, measure, count)
      GROUP BY engine, profile, measure ${ADD_DELETED}`;
  });
}

async function checkWarnings(db: Database, runId: string): Promise<void> {
  const rows = await db.read<{ attempt_number: number; warnings_json: string }>({
    name: 'turn-warnings-of-run',
    text: 'SELECT attempt_number, warnings_json FROM parley.turns WHERE run_id = $1',
    values: [runId],
  });
  for (const { attempt_number: attempt, warnings_json: text } of rows)
    readStoredJson(text, () =>
      damageText('damage.of', {
        column: 'warnings_json',
        owner: damageText('damage.turn', { turn: attempt, run: runId }),
      }),
    );
}

const EXACT = '$1::text IS NOT NULL';
const ONLY = '($1::text IS NULL OR run_id = $1::text)';

// The sum of one run is exact or fails: verify compares it with the events.
export async function sumTurns(db: Database, runId: string | undefined): Promise<ProfileTotals[]> {
  const values = [runId ?? null];
  if (runId !== undefined) await checkWarnings(db, runId);
  const [sums, warnings, unknown, deleted] = await Promise.all([
    db.read<TurnSum>({
      name: 'turn-sums',
      values,
      text: `SELECT engine, profile, count(*) AS turns, ${sumOf('units', EXACT)} AS units,
        ${sumOf('parsed', EXACT)} AS parsed, ${sumOf('fallbacks', EXACT)} AS fallbacks
      FROM parley.turns WHERE ${ONLY} GROUP BY engine, profile`,
    }),
    db.read<NamedCount>({
      name: 'turn-warnings',
      values,
      text: `SELECT engine, profile, warning.name AS name, ${sumOf('warning.count', EXACT)} AS count
      FROM parley.turns, parley.count_warnings(warnings_json) AS warning
      WHERE warnings_json <> '{}' AND ${ONLY} GROUP BY engine, profile, warning.name`,
    }),
    db.read<NamedCount>({
      name: 'turn-unknown',
      values,
      text: `SELECT engine, profile, reason_code AS name, count(*) AS count
      FROM parley.turns WHERE completion = 'unknown' AND ${ONLY} GROUP BY engine, profile, name`,
    }),
    runId === undefined
      ? db.read<DeletedCount>({
          name: 'deleted-turns',
          values: [],
          text: 'SELECT engine, profile, measure, count FROM parley.deleted_turns',
        })
      : [],
  ]);
  return addUpTurns({ sums, warnings, unknown, deleted });
}
