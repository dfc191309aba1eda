// Counts how much of the output of each turn the parser understood: one row per turn, and sums by engine and profile.
import { addUpTurns, groupByProfile, type NamedCount, type TurnCount, type TurnSum } from '../add-up-turns.js';
import { damageText } from '../../kernel/damage-texts.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import type { ProfileTotals, TurnCounts } from '../store.js';
import { isCount } from '../stored-shapes.js';
import { readTotals } from './totals.js';
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

const sum = (name: string): string => `COALESCE(sum(${name}), 0)::bigint`;

// The sum of one run is exact or fails: verify compares it with the events. The sum of all runs is that of the totals.
export async function sumTurns(db: Database, runId: string | undefined): Promise<ProfileTotals[]> {
  if (runId === undefined) return groupByProfile(await listTurnTotals(db));
  await checkWarnings(db, runId);
  const values = [runId];
  const [sums, warnings, unknown] = await Promise.all([
    db.read<TurnSum>({
      name: 'turn-sums',
      values,
      text: `SELECT engine, profile, count(*) AS turns, ${sum('units')} AS units, ${sum('parsed')} AS parsed,
        ${sum('fallbacks')} AS fallbacks
      FROM parley.turns WHERE run_id = $1 GROUP BY engine, profile`,
    }),
    db.read<NamedCount>({
      name: 'turn-warnings',
      values,
      text: `SELECT engine, profile, warning.name AS name, ${sum('warning.count')} AS count
      FROM parley.turns, parley.count_warnings(warnings_json) AS warning
      WHERE warnings_json <> '{}' AND run_id = $1 GROUP BY engine, profile, warning.name`,
    }),
    db.read<NamedCount>({
      name: 'turn-unknown',
      values,
      text: `SELECT engine, profile, reason_code AS name, count(*) AS count
      FROM parley.turns WHERE completion = 'unknown' AND run_id = $1 GROUP BY engine, profile, name`,
    }),
  ]);
  return addUpTurns({ sums, warnings, unknown });
}

// Leaves out damaged totals.
async function listTurnTotals(db: Database): Promise<TurnCount[]> {
  const rows = (await readTotals(db)).filter(({ subject }) => subject === 'turns');
  return rows.filter(({ count }) => isCount(count));
}
