// Runs and questions that match a filter, page by page.
import { readableInteractions, type InteractionRow, type RunRow } from '../rows.js';
import type { EndedFilter, EndedRun, InteractionRecord, PendingFilter, RunFilter } from '../store.js';
import type { Database } from './open-database.js';

export function selectRunRows(db: Database, filter: RunFilter): RunRow[] {
  return selectRuns(db, '*', filter) as RunRow[];
}

export function listRunIds(db: Database, filter: RunFilter): string[] {
  return (selectRuns(db, 'run_id', filter) as { run_id: string }[]).map((row) => row.run_id);
}

export function listEnded(db: Database, { before, after, limit }: EndedFilter): EndedRun[] {
  const rows = db
    .prepare(`SELECT run_id, updated_at, home, continues FROM runs INDEXED BY runs_ended
      WHERE status IN ('succeeded', 'failed', 'canceled') AND updated_at < ? AND (updated_at, run_id) > (?, ?)
      ORDER BY updated_at, run_id LIMIT ?`)
    .all(before, after?.updated_at ?? 0, after?.run_id ?? '', limit) as unknown as (Omit<EndedRun, 'continues'> & {
    continues: number;
  })[];
  return rows.map(({ run_id: id, updated_at: at, home, continues }) => ({
    run_id: id,
    updated_at: at,
    home,
    continues: continues === 1,
  }));
}

export function listQueued(db: Database, limit: number): string[] {
  const rows = db
    .prepare(`SELECT run_id FROM runs INDEXED BY runs_queued
      WHERE status = 'queued' ORDER BY queued_at, run_id LIMIT ?`)
    .all(limit) as { run_id: string }[];
  return rows.map((row) => row.run_id);
}

export function listByTail(db: Database, tails: readonly string[]): string[] {
  const select = db.prepare('SELECT run_id FROM runs WHERE substr(run_id, -6) = ? ORDER BY run_id DESC');
  return [...new Set(tails)].flatMap((tail) => (select.all(tail) as { run_id: string }[]).map((row) => row.run_id));
}

export function listByPrefix(db: Database, prefix: string, limit: number): string[] {
  const select = db.prepare('SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id DESC LIMIT ?');
  return (select.all(prefix, `${prefix}\uffff`, limit) as { run_id: string }[]).map((row) => row.run_id);
}

export function selectRuns(db: Database, columns: string, filter: RunFilter): unknown[] {
  const { status, engine, label, before, limit } = filter;
  if (label !== undefined) {
    const ids = listLabelled(db, { ...filter, label });
    const query = `SELECT ${columns} FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY run_id DESC`;
    return db.prepare(query).all(JSON.stringify(ids));
  }
  const [where, values] = conditions([
    status !== undefined && ['status = ?', status],
    engine !== undefined && ['engine = ?', engine],
    before !== undefined && ['run_id < ?', before],
  ]);
  return db.prepare(`SELECT ${columns} FROM runs ${where} ORDER BY run_id DESC LIMIT ?`).all(...values, limit);
}

// Greater than every run id: they are ASCII.
const AFTER_ALL_IDS = '\uffff';

const labelled = (below: string): string => `SELECT run_id FROM run_labels
  WHERE key = :key AND value = :value AND run_id < ${below} ORDER BY run_id DESC`;
// A space comes before every character of an id, so this limit includes the other id, unless both are the same.
const upTo = (other: string): string => `iif(labelled = matching, labelled, ${other} || ' ')`;

// Reads the index of the label downwards until the page is full. With another filter, it goes down in two indexes at
// once: whichever is ahead skips to the other. So the cost grows with the smaller of the two results, not with the
// number of runs that have the label.
function listLabelled(
  db: Database,
  { status, engine, label, before = AFTER_ALL_IDS, limit }: RunFilter & Required<Pick<RunFilter, 'label'>>,
): string[] {
  const state = [
    ...(status === undefined ? [] : ['status = :status']),
    ...(engine === undefined ? [] : ['engine = :engine']),
  ];
  const matching = (below: string): string => `SELECT run_id FROM runs
    WHERE ${state.join(' AND ')} AND run_id < ${below} ORDER BY run_id DESC`;
  const query =
    state.length === 0
      ? `${labelled(':before')} LIMIT :limit`
      : `WITH RECURSIVE pairs (labelled, matching) AS (
          SELECT (${labelled(':before')} LIMIT 1), (${matching(':before')} LIMIT 1)
          UNION ALL
          SELECT
            iif(labelled < matching, labelled, (${labelled(upTo('matching'))} LIMIT 1)),
            iif(matching < labelled, matching, (${matching(upTo('labelled'))} LIMIT 1))
          FROM pairs WHERE labelled IS NOT NULL AND matching IS NOT NULL
        )
        SELECT labelled AS run_id FROM pairs WHERE labelled = matching LIMIT :limit`;
  const rows = db.prepare(query).all({
    ':key': label.key,
    ':value': label.value,
    ':before': before,
    ':limit': limit,
    ...(status === undefined ? {} : { ':status': status }),
    ...(engine === undefined ? {} : { ':engine': engine }),
  }) as { run_id: string }[];
  return rows.map((row) => row.run_id);
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
    engine !== undefined && ['engine = ?', engine],
    label !== undefined && hasLabel(db, label),
    overdueAt !== undefined && ['due_at < ?', overdueAt],
    after !== undefined && [AFTER, after.interaction_id, after.asked_at, after.interaction_id],
  ]);
  return db
    .prepare(`SELECT ${columns} FROM interactions ${where} ORDER BY asked_at, interaction_id LIMIT ?`)
    .all(...values, limit);
}

// If few waiting runs have the label, their questions are sorted. Otherwise the pending questions are read in their
// order, and a page is soon full.
const FEW = 200;

function hasLabel(db: Database, label: NonNullable<PendingFilter['label']>): Condition {
  const ids = listLabelled(db, { status: 'waiting_user', label, limit: FEW });
  return ids.length < FEW
    ? ['run_id IN (SELECT value FROM json_each(?))', JSON.stringify(ids)]
    : [
        'EXISTS (SELECT 1 FROM run_labels WHERE key = ? AND value = ? AND run_id = interactions.run_id)',
        label.key,
        label.value,
      ];
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

type Condition = readonly [condition: string, ...values: (string | number)[]];

// Builds the WHERE clause of a filter with its values.
function conditions(asked: readonly (false | Condition)[]): [where: string, values: (string | number)[]] {
  const active = asked.filter((each) => each !== false);
  return [
    active.length === 0 ? '' : `WHERE ${active.map(([condition]) => condition).join(' AND ')}`,
    active.flatMap(([, ...values]) => values),
  ];
}
