// A row of the administrative journal as people and programs see it. A damaged row is shown as far as it can be read.
import { toTimestamp } from '../kernel/clock.js';
import { isObject, parseJson, type JsonObject } from '../kernel/json.js';
import type { AuditRow } from '../store/audit.js';

export interface AuditView {
  readonly seq: number;
  readonly ts: string;
  readonly type: string;
  readonly actor: JsonObject | null;
  readonly address: string | null;
  readonly body: JsonObject;
  readonly digest: string;
}

export function viewAudit({ seq, ts, type, actor_json: actor, address, body_json: body, digest }: AuditRow): AuditView {
  const who = actor === null ? null : parseJson(actor);
  const what = parseJson(body);
  return {
    seq,
    ts: timeOf(ts),
    type,
    actor: isObject(who) ? who : null,
    address,
    body: isObject(what) ? what : { damaged: body },
    digest,
  };
}

function timeOf(ms: number): string {
  return Number.isSafeInteger(ms) && Math.abs(ms) < 8.64e15 ? toTimestamp(ms) : toTimestamp(0);
}
