// The row format of a group: the small flushes of one transaction, one after the other, compressed if they are large.
// Each flush is a line of JSON that describes it, followed by its RASP lines and its FCMP lines.
import { damageText } from '../../../kernel/damage-texts.js';
import { isObject } from '../../../kernel/json.js';
import { DamagedDataError, readStoredJson } from '../../../kernel/stored-json.js';
import { countLines, toBuffer } from '../../cut-segments.js';
import { isCount, isRunId, isTime } from '../../stored-shapes.js';
import type { JournalFlush, JournalHeads } from '../../store.js';
import { packBody, unpackBody, type PackedBody } from '../pack-body.js';

export interface RecentFlush {
  readonly runId: string;
  // When it was stored.
  readonly now: number;
  readonly journal: JournalFlush;
  // The heads of the run after this flush.
  readonly heads: JournalHeads;
}

interface Description {
  readonly run_id: string;
  readonly now: number;
  readonly first_ts: number;
  readonly heads: JournalHeads;
  readonly rasp: Part;
  readonly fcmp: (Part & { readonly first_ts: number }) | null;
}

interface Part {
  readonly first_seq: number;
  readonly bytes: number;
}

// Compressing a smaller group costs more than it saves.
const LEAST_PACKED_BYTES = 8 * 1024;

export function encodeGroup(flushes: readonly RecentFlush[]): PackedBody {
  const pieces = flushes.flatMap(({ runId, now, journal: { rasp, fcmp, firstTs }, heads }) => {
    const description: Description = {
      run_id: runId,
      now,
      first_ts: firstTs,
      heads,
      rasp: { first_seq: rasp.firstSeq, bytes: rasp.bytes.length },
      fcmp: fcmp && { first_seq: fcmp.firstSeq, bytes: fcmp.bytes.length, first_ts: fcmp.firstTs },
    };
    return [Buffer.from(`${JSON.stringify(description)}\n`), rasp.bytes, ...(fcmp ? [fcmp.bytes] : [])];
  });
  return packBody(Buffer.concat(pieces), { leastBytes: LEAST_PACKED_BYTES });
}

// Throws a DamagedDataError if the group contradicts itself.
export function decodeGroup(body: PackedBody): RecentFlush[] {
  const bytes = toBuffer(unpackBody(body));
  const flushes: RecentFlush[] = [];
  for (let at = 0; at < bytes.length;) {
    const start = bytes.indexOf(0x0a, at) + 1;
    const described = start > 0 ? readStoredJson(bytes.toString('utf8', at, start)) : null;
    if (!isDescription(described)) throw new DamagedDataError(damageText('damage.group_form'));
    const { run_id: runId, now, first_ts: firstTs, heads, rasp, fcmp } = described;
    const raspEnd = start + rasp.bytes;
    at = raspEnd + (fcmp?.bytes ?? 0);
    const fcmpLines = fcmp && {
      firstSeq: fcmp.first_seq,
      lastSeq: heads.fcmp_seq,
      bytes: bytes.subarray(raspEnd, at),
      firstTs: fcmp.first_ts,
    };
    const raspLines = { firstSeq: rasp.first_seq, lastSeq: heads.rasp_seq, bytes: bytes.subarray(start, raspEnd) };
    for (const lines of [raspLines, ...(fcmpLines ? [fcmpLines] : [])])
      if (lines.bytes.at(-1) !== 0x0a || countLines(lines.bytes) !== lines.lastSeq - lines.firstSeq + 1)
        throw new DamagedDataError(damageText('damage.group_content', { run: runId }));
    flushes.push({ runId, now, heads, journal: { rasp: raspLines, fcmp: fcmpLines, firstTs, lastTs: heads.ts } });
  }
  return flushes;
}

function isDescription(value: unknown): value is Description {
  return (
    isObject(value) &&
    isRunId(value.run_id) &&
    isTime(value.now) &&
    isTime(value.first_ts) &&
    isObject(value.heads) &&
    isCount(value.heads.rasp_seq) &&
    isCount(value.heads.fcmp_seq) &&
    isTime(value.heads.ts) &&
    typeof value.heads.digest === 'string' &&
    isPart(value.rasp) &&
    (value.fcmp === null || (isPart(value.fcmp) && isTime(value.fcmp.first_ts)))
  );
}

function isPart(value: unknown): value is Part & Record<string, unknown> {
  return isObject(value) && isCount(value.first_seq) && isCount(value.bytes);
}
