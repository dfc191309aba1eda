// Runs and questions that match a filter, page by page.
import { readableInteractions, type InteractionRow, type RunRow } from '../rows.js';
import type { InteractionRecord, PendingFilter, RunFilter } from '../store.js';
import type { Database } from './open-database.js';

export function selectRunRows(db: Database, filter: RunFilter): RunRow[] {
  return selectRuns(db, '*', filter) as RunRow[];
}

export function listRunIds(db: Database, filter: RunFilter): string[] {
  return (selectRuns(db, 'run_id', filter) as { run_id: string }[]).map((row) => row.run_id);
}

export function listByTail(db: Database, tails: readonly string[]): string[] {
  const select = db.prepare('SELECT run_id FROM runs WHERE substr(run_id, -6) = ? ORDER BY run_id DESC');
  return [...new Set(tails)].flatMap((tail) => (select.all(tail) as { run_id: string }[]).map((row) => row.run_id));
}

export function listByPrefix(db: Database, prefix: string, limit: number): string[] {
  const select = db.prepare('SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id DESC LIMIT ?');
  return (select.all(prefix, `${prefix}\uffff`, limit) as { run_id: string }[]).map((row) => row.run_id);
}

export function selectRuns(
  db: Database,
  columns: string,
  { status, engine, label, before, limit }: RunFilter,
): unknown[] {
  const [where, values] = conditions([
    status !== undefined && ['status = ?', status],
    engine !== undefined && ['engine = ?', engine],
    label !== undefined && [
      'run_id IN (SELECT run_id FROM run_labels WHERE key = ? AND value = ?)',
      label.key,
      label.value,
    ],
    before !== undefined && ['run_id < ?', before],
  ]);
  return db.prepare(`SELECT ${columns} FROM runs ${where} ORDER BY run_id DESC LIMIT ?`).all(...values, limit);
}

// Returns up to the limit, however many damaged rows are skipped.
export function listPending(db: Database, filter: PendingFilter): InteractionRecord[] {
  const interactions: InteractionRecord[] = [];
  for (let { after } = filter; ;) {
    const rows = selectPending(db, '*', { ...filter, ...(after ? { after } : {}) }) as InteractionRow[];
    for (const interaction of readableInteractions(rows))
      if (interactions.length < filter.limit) interactions.push(interaction);
    after = rows.at(-1);
    if (rows.length < filter.limit || interactions.length === filter.limit) return interactions;
  }
}

// Compares with the time in the row itself: a damaged time may not be an exact number, and the same page would be
// returned again.
const AFTER =
  '(asked_at, interaction_id) > (COALESCE((SELECT asked_at FROM interactions WHERE interaction_id = ?), ?), ?)';

export function selectPending(
  db: Database,
  columns: string,
  { engine, label, overdueAt, after, limit }: PendingFilter,
): unknown[] {
  const [where, values] = conditions([
    [`state = 'pending'`],
    engine !== undefined && ['run_id IN (SELECT run_id FROM runs WHERE engine = ?)', engine],
    label !== undefined && [
      'run_id IN (SELECT run_id FROM run_labels WHERE key = ? AND value = ?)',
      label.key,
      label.value,
    ],
    overdueAt !== undefined && ['due_at < ?', overdueAt],
    after !== undefined && [AFTER, after.interaction_id, after.asked_at, after.interaction_id],
  ]);
  return db
    .prepare(`SELECT ${columns} FROM interactions ${where} ORDER BY asked_at, interaction_id LIMIT ?`)
    .all(...values, limit);
}

// The question that is decided first.
export function nextDecision(db: Database, except: readonly string[]): InteractionRecord | null {
  const rows = db
    .prepare(`SELECT * FROM interactions WHERE state = 'pending' AND decides = 1
      AND interaction_id NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at, interaction_id`)
    .iterate(JSON.stringify(except)) as Iterable<InteractionRow>;
  for (const interaction of readableInteractions(rows)) return interaction;
  return null;
}

// Builds the WHERE clause of a filter with its values.
function conditions(
  asked: readonly (false | readonly [condition: string, ...values: (string | number)[]])[],
): [where: string, values: (string | number)[]] {
  const active = asked.filter((each) => each !== false);
  return [
    active.length === 0 ? '' : `WHERE ${active.map(([condition]) => condition).join(' AND ')}`,
    active.flatMap(([, ...values]) => values),
  ];
}
