// Reads a run's event texts by seq and by time. A segment is read whole and cut at its lines.
import type { Protocol, ReadRange } from '../store.js';
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
