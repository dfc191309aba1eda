// Reads the columns of a run as text, whatever type a damaged value has.
import { QUESTIONS, salvage, type SalvagedRun } from '../salvage.js';
import type { Store } from '../store.js';
import type { RunRow } from '../rows.js';
import type { Database } from './open-database.js';
import type { RecentFlush } from './recent/group-format.js';
import { withRecentHeads } from './recent/recent-flushes.js';

const NUMBERS = [
  'attempt_number',
  'epoch',
  'waited_ms',
  'crashes',
  'created_at',
  'updated_at',
  'rasp_seq',
  'fcmp_seq',
  'ts',
];
const TEXTS = [
  'request_id',
  'engine',
  'spec_json',
  'status',
  'error_json',
  'result_json',
  'cancel_requested_json',
  'digest',
];
const SELECT = `SELECT run_id, ${[...NUMBERS, ...TEXTS].map((name) => `CAST(${name} AS TEXT) AS ${name}`).join(', ')}
  FROM runs WHERE run_id = ?`;

// As if every number could be read.
type SalvagedRow = RunRow & Record<string, unknown>;

export async function salvageRun(
  db: Database,
  store: Pick<Store, 'loadInteraction' | 'loadHandle'>,
  { runId, newest }: { readonly runId: string; readonly newest: RecentFlush | undefined },
): Promise<SalvagedRun | null> {
  const row = db.prepare(SELECT).get(runId) as Record<string, string | null> | undefined;
  if (!row) return null;
  const ids = db
    .prepare(`SELECT interaction_id FROM interactions WHERE run_id = ? ORDER BY interaction_id DESC LIMIT ${QUESTIONS}`)
    .all(runId);
  return salvage({
    row: withRecentHeads(
      { ...row, ...Object.fromEntries(NUMBERS.map((name) => [name, toNumber(row[name] ?? null)])) } as SalvagedRow,
      newest,
    ),
    questionIds: (ids as { interaction_id: string }[]).map(({ interaction_id: id }) => id),
    loadInteraction: (id) => store.loadInteraction(id),
    loadHandle: (id) => store.loadHandle(id),
  });
}

function toNumber(text: string | null): number | string | null {
  return text !== null && /^\d{1,16}$/.test(text) ? Number(text) : text;
}
