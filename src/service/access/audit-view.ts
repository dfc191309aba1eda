// A row of the administrative journal as people and programs see it. A damaged row is shown as far as it can be read.
import { toTimestamp } from '../../kernel/clock.js';
import { isObject, parseJson, type JsonObject } from '../../kernel/json.js';
import type { AuditRow } from '../../store/audit.js';
import { isTime } from '../../store/stored-shapes.js';

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
    seq: safeSeq(seq),
    ts: timeOf(ts),
    type,
    actor: isObject(who) && typeof who.kind === 'string' && typeof who.name === 'string' ? who : null,
    address,
    body: isObject(what) ? what : { damaged: body },
    digest,
  };
}

// A row that Parley has not written may contain any number.
export function safeSeq(seq: number): number {
  return Math.min(Math.max(seq, 1), Number.MAX_SAFE_INTEGER);
}

function timeOf(ms: number): string {
  return isTime(ms) ? toTimestamp(ms) : toTimestamp(0);
}
