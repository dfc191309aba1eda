// The queue of webhook deliveries: one row for each hook and change, until the delivery has arrived. A claim on a
// delivery lasts a minute by the database's clock; no other claimant gets the delivery during that time.
import type { JsonObject } from '../../kernel/json.js';
import { readStoredJson, unlessDamaged } from '../../kernel/stored-json.js';
import {
  GIVEN_UP_KEPT_MS,
  type Delivery,
  type DeliveryOutcome,
  type JournalHeads,
  type NewDelivery,
} from '../store.js';
import { toDeliveryCounts } from '../totals.js';
import type { Composition } from './connection/compose.js';
import type { Database, Statement } from './connection/database.js';
import { ifUncertain } from './connection/if-uncertain.js';
import { fromText, toText } from './connection/text.js';
import { readStates } from './totals.js';

interface DeliveryRow extends Omit<Delivery, 'payload'> {
  readonly payload_json: string;
}

export function addDeliveries(
  to: Composition,
  deliveries: readonly NewDelivery[],
  { runId, heads, now }: { readonly runId: string; readonly heads: JournalHeads; readonly now: number },
): void {
  const column = (write: (delivery: NewDelivery) => string) => deliveries.map(write);
  to.add(
    'd',
    (
      param,
    ) => `INSERT INTO parley.deliveries (delivery_id, hook, type, payload_json, run_id, rasp_seq, digest, created_at,
      state, tries, next_at)
    SELECT id, hook, type, payload, ${param(runId, 'text')}, ${param(heads.rasp_seq, 'bigint')},
      ${param(heads.digest, 'text')}, ${param(now, 'bigint')}, 'pending', 0, ${param(now, 'bigint')}
    FROM unnest(${param(
      column(({ delivery_id: id }) => id),
      'text[]',
    )}, ${param(
      column(({ hook }) => toText(hook)),
      'text[]',
    )}, ${param(
      column(({ type }) => type),
      'text[]',
    )},
      ${param(
        column(({ payload }) => JSON.stringify(payload)),
        'text[]',
      )}) AS each (id, hook, type, payload)`,
  );
}

const FREE = '(claimed_by IS NULL OR claimed_by = $1 OR claimed_until <= clock_timestamp())';

interface DeliveryQuery {
  readonly now: number;
  // The hooks to leave out.
  readonly except: readonly string[];
}

// Claims the delivery that is due first. Returns a delivery that the claimant holds already again: a claimant knows
// which deliveries it is sending.
export async function nextDelivery(
  db: Database,
  claimant: string,
  { now, except }: DeliveryQuery,
): Promise<Delivery | null> {
  const [row] = await db.read<DeliveryRow>({
    name: 'next-delivery',
    text: `UPDATE parley.deliveries SET claimed_by = $1, claimed_until = clock_timestamp() + interval '60 seconds'
      WHERE delivery_id = (
      SELECT delivery_id FROM parley.deliveries
      WHERE state = 'pending' AND next_at <= $2::bigint AND hook <> ALL ($3::text[]) AND ${FREE}
      ORDER BY next_at, delivery_id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING delivery_id, hook, type, payload_json, run_id, rasp_seq, digest, created_at, tries, next_at, error`,
    values: [claimant, now, except.map(toText)],
  });
  if (!row) return null;
  const { payload_json: text, hook, error, ...rest } = row;
  const what = `payload_json of delivery ${row.delivery_id}`;
  // Gives a delivery with a damaged payload up at once, so that it does not delay the others.
  const payload = await unlessDamaged(Promise.resolve().then(() => readStoredJson(text, what) as JsonObject));
  if (payload) return { ...rest, hook: fromText(hook), error: error === null ? null : fromText(error), payload };
  await finishDelivery(db, row.delivery_id, { type: 'given_up', at: now, error: `${what} is damaged` });
  return nextDelivery(db, claimant, { now, except });
}

// Returns when the next delivery is due. A delivery that another claimant sends is due when that claim expires,
// converted to the caller's clock, which may differ from the database's.
export async function nextDeliveryAt(
  db: Database,
  claimant: string,
  { now, except }: DeliveryQuery,
): Promise<number | null> {
  const [row] = await db.read<{ at: number | null; claimed: number | null }>({
    name: 'next-delivery-at',
    text: `SELECT
      (SELECT next_at FROM parley.deliveries WHERE state = 'pending' AND hook <> ALL ($2::text[]) AND ${FREE}
      ORDER BY next_at LIMIT 1) AS at,
      (SELECT min(greatest(next_at, $3::bigint + ceil(extract(epoch
      FROM claimed_until - clock_timestamp()) * 1000)::bigint)) FROM parley.deliveries
        WHERE state = 'pending' AND hook <> ALL ($2::text[]) AND claimed_by <> $1
          AND claimed_until > clock_timestamp()) AS claimed`,
    values: [claimant, except.map(toText), now],
  });
  const times = [row?.at, row?.claimed].filter((at) => at !== null && at !== undefined);
  return times.length === 0 ? null : Math.min(...times);
}

// For a delivery that was given up, next_at is the time of that. Only then a row remains, so only then old rows are
// deleted.
export async function finishDelivery(db: Database, id: string, outcome: DeliveryOutcome): Promise<boolean> {
  const update = async () => (await db.write(settleStatement(id, outcome))).length === 1;
  return ifUncertain(update, async () => (await isSettled(db, id, outcome)) || update());
}

function settleStatement(id: string, outcome: DeliveryOutcome): Statement {
  if (outcome.type === 'delivered')
    return {
      name: 'delivered',
      text: `DELETE FROM parley.deliveries WHERE delivery_id = $1 AND state = 'pending' RETURNING delivery_id`,
      values: [id],
    };
  const forget = `WITH old AS (DELETE FROM parley.deliveries
    WHERE state = 'given_up' AND next_at < $2::bigint - ${GIVEN_UP_KEPT_MS}) `;
  return {
    name: outcome.type,
    text: `${outcome.type === 'given_up' ? forget : ''}UPDATE parley.deliveries
      SET state = '${outcome.type === 'retry' ? 'pending' : 'given_up'}', tries = tries + 1, next_at = $2::bigint,
        error = $3,
      claimed_by = NULL, claimed_until = NULL WHERE delivery_id = $1 AND state = 'pending' RETURNING delivery_id`,
    values: [id, outcome.at, toText(outcome.error)],
  };
}

// Whether the attempt whose result was lost was stored.
async function isSettled(db: Database, id: string, outcome: DeliveryOutcome): Promise<boolean> {
  const [row] = await db.read<{ state: string; next_at: number; error: string | null; claimed_by: string | null }>({
    name: 'delivery',
    text: 'SELECT state, next_at, error, claimed_by FROM parley.deliveries WHERE delivery_id = $1',
    values: [id],
  });
  if (outcome.type === 'delivered' || row === undefined) return row === undefined;
  return (
    row.state === (outcome.type === 'retry' ? 'pending' : 'given_up') &&
    row.next_at === outcome.at &&
    row.error === toText(outcome.error) &&
    row.claimed_by === null
  );
}

export async function countDeliveries(db: Database): Promise<{ pending: number; given_up: number }> {
  return toDeliveryCounts(await readStates(db, 'deliveries'));
}
