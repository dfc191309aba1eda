// The queue of webhook deliveries: one row for each hook and change, until the delivery has arrived.
import type { JsonObject } from '../../kernel/json.js';
import { damageIn, readStoredJson } from '../../kernel/stored-json.js';
import {
  GIVEN_UP_KEPT_MS,
  type Delivery,
  type DeliveryOutcome,
  type JournalHeads,
  type NewDelivery,
} from '../store.js';
import { toDeliveryCounts } from '../totals.js';
import type { Database } from './open-database.js';
import { readStates } from './totals.js';

interface DeliveryRow extends Omit<Delivery, 'payload'> {
  readonly payload_json: string;
  readonly state: string;
}

export function insertDelivery(
  db: Database,
  { delivery_id: id, hook, type, payload }: NewDelivery,
  { runId, heads, now }: { readonly runId: string; readonly heads: JournalHeads; readonly now: number },
): void {
  db.prepare(
    `INSERT INTO deliveries (delivery_id, hook, type, payload_json, run_id, rasp_seq, digest, created_at, state, tries,
      next_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?)`,
  ).run(id, hook, type, JSON.stringify(payload), runId, heads.rasp_seq, heads.digest, now, now);
}

// A delivery with a damaged payload is given up at once, so that it does not delay the others.
export function nextDelivery(db: Database, now: number, except: readonly string[]): Delivery | null {
  for (;;) {
    const row = nextRow(db, now, except);
    if (!row) return null;
    try {
      const { payload_json: payload, state: _, ...rest } = row;
      return { ...rest, payload: readStoredJson(payload, `payload_json of delivery ${row.delivery_id}`) as JsonObject };
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      finishDelivery(db, row.delivery_id, { type: 'given_up', at: now, error: damage.message });
    }
  }
}

// The hooks that have pending deliveries, one seek for each: those of one hook are not read to find those of another.
const HOOKS = `WITH RECURSIVE hooks (hook) AS (
    SELECT MIN(hook) FROM deliveries WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT MIN(hook) FROM deliveries WHERE state = 'pending' AND hook > hooks.hook) FROM hooks
      WHERE hooks.hook IS NOT NULL
  )`;
const WANTED = 'hooks.hook IS NOT NULL AND hooks.hook NOT IN (SELECT value FROM json_each(?))';

function nextRow(db: Database, now: number, except: readonly string[]): DeliveryRow | undefined {
  return db
    .prepare(`${HOOKS} SELECT deliveries.* FROM hooks CROSS JOIN deliveries ON delivery_id = (
        SELECT first.delivery_id FROM deliveries AS first
        WHERE first.state = 'pending' AND first.hook = hooks.hook AND first.next_at <= ?
        ORDER BY first.next_at, first.delivery_id LIMIT 1)
      WHERE ${WANTED} ORDER BY next_at, delivery_id LIMIT 1`)
    .get(now, JSON.stringify(except)) as DeliveryRow | undefined;
}

export function nextDeliveryAt(db: Database, except: readonly string[]): number | null {
  const row = db
    .prepare(`${HOOKS} SELECT MIN((SELECT MIN(next_at) FROM deliveries
        WHERE state = 'pending' AND hook = hooks.hook)) AS next_at
      FROM hooks WHERE ${WANTED}`)
    .get(JSON.stringify(except)) as { next_at: number | null } | undefined;
  return row?.next_at ?? null;
}

// For a delivery that was given up, next_at is the time of that. Only then a row remains, so only then old rows are
// deleted.
export function finishDelivery(db: Database, id: string, outcome: DeliveryOutcome): boolean {
  if (outcome.type === 'delivered')
    return (
      Number(db.prepare(`DELETE FROM deliveries WHERE delivery_id = ? AND state = 'pending'`).run(id).changes) === 1
    );
  if (outcome.type === 'given_up')
    db.prepare(`DELETE FROM deliveries WHERE state = 'given_up' AND next_at < ?`).run(outcome.at - GIVEN_UP_KEPT_MS);
  const { changes } = db
    .prepare(
      `UPDATE deliveries SET state = ?, tries = tries + 1, next_at = ?, error = ?
        WHERE delivery_id = ? AND state = 'pending'`,
    )
    .run(outcome.type === 'retry' ? 'pending' : 'given_up', outcome.at, outcome.error, id);
  return Number(changes) === 1;
}

export function countDeliveries(db: Database): { pending: number; given_up: number } {
  return toDeliveryCounts(readStates(db, 'deliveries'));
}

// Deliveries that have not arrived yet remain.
export function forgetGivenUp(db: Database, runId: string): void {
  db.prepare(`DELETE FROM deliveries INDEXED BY deliveries_by_run WHERE state = 'given_up' AND run_id = ?`).run(runId);
}
