// Reads a run's event texts by seq and by time. A segment is read whole and cut at its lines.
import type { Lines, Protocol, ReadRange } from '../store.js';
import type { Database } from './open-database.js';

interface Segment {
  seq_from: number;
  body: Uint8Array;
}

export type ReadJournal = (runId: string, protocol: Protocol, range: ReadRange) => string[];

export function prepareRead(db: Database): ReadJournal {
  const select = db.prepare(`SELECT seq_from, body FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to >= ? AND seq_from <= ? AND ts_to >= ? AND ts_from <= ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY seq_from`);
  return (runId, protocol, range) => {
    const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER, fromTs, toTs, limit } = range;
    const found: string[] = [];
    const segments = select.iterate(runId, protocol, fromSeq, toSeq, fromTs ?? 0, toTs ?? Number.MAX_SAFE_INTEGER, runId, protocol, fromSeq) as Iterable<Segment>;
    for (const { seq_from: seqFrom, body } of segments) {
      const lines = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8').split('\n');
      lines.pop();
      for (const [index, line] of lines.entries()) {
        const seq = seqFrom + index;
        if (seq < fromSeq || !isWithin(line, fromTs, toTs)) continue;
        if (seq > toSeq || found.length >= limit) return found;
        found.push(line);
      }
      if (found.length >= limit) return found;
    }
    return found;
  };
}

function isWithin(line: string, fromTs: number | undefined, toTs: number | undefined): boolean {
  if (fromTs === undefined && toTs === undefined) return true;
  const ts = Date.parse((JSON.parse(line) as { ts: string }).ts);
  return ts >= (fromTs ?? 0) && ts <= (toTs ?? Number.MAX_SAFE_INTEGER);
}

export type ReadLines = (runId: string, protocol: Protocol, afterSeq: number, maxBytes: number) => Lines | null;

export function prepareReadLines(db: Database): ReadLines {
  const select = db.prepare(`SELECT seq_from, seq_to, body FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to > ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY seq_from`);
  return (runId, protocol, afterSeq, maxBytes) => {
    const pieces: Buffer[] = [];
    let lastSeq = afterSeq;
    let room = maxBytes;
    for (const { seq_from: seqFrom, seq_to: seqTo, body } of select.iterate(runId, protocol, afterSeq, runId, protocol, afterSeq + 1) as Iterable<Segment & { seq_to: number }>) {
      const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
      const from = skipLines(bytes, lastSeq + 1 - seqFrom);
      const whole = bytes.length - from <= room;
      const to = whole ? bytes.length : endWithin(bytes, from, room, pieces.length === 0);
      if (to > from) pieces.push(bytes.subarray(from, to));
      lastSeq = whole ? seqTo : lastSeq + countLines(bytes, from, to);
      room -= to - from;
      if (!whole || room <= 0) break;
    }
    const [only] = pieces;
    return only === undefined ? null : { firstSeq: afterSeq + 1, lastSeq, bytes: pieces.length === 1 ? only : Buffer.concat(pieces) };
  };
}

function skipLines(bytes: Buffer, lines: number): number {
  let at = 0;
  for (let skipped = 0; skipped < lines; skipped += 1) at = bytes.indexOf(0x0a, at) + 1;
  return at;
}

// Where the last line ends that fits; a first one that does not fit is taken all the same.
function endWithin(bytes: Buffer, from: number, room: number, atLeastOne: boolean): number {
  const end = bytes.lastIndexOf(0x0a, from + room - 1) + 1;
  if (end > from) return end;
  return atLeastOne ? bytes.indexOf(0x0a, from) + 1 : from;
}

function countLines(bytes: Buffer, from: number, to: number): number {
  let lines = 0;
  for (let at = bytes.indexOf(0x0a, from); at >= 0 && at < to; at = bytes.indexOf(0x0a, at + 1)) lines += 1;
  return lines;
}
