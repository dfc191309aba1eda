// Reads a run's event texts by seq and by time. A segment is read whole and cut at its lines.
import { LineGatherer, TextPicker, type Segment } from '../cut-segments.js';
import type { Lines, Protocol, ReadRange } from '../store.js';
import type { Database } from './open-database.js';

export type ReadJournal = (runId: string, protocol: Protocol, range: ReadRange) => string[];

export function prepareRead(db: Database): ReadJournal {
  const select = db.prepare(`SELECT seq_from, seq_to, body FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to >= ? AND seq_from <= ? AND ts_to >= ? AND ts_from <= ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY seq_from`);
  return (runId, protocol, range) => {
    const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER, fromTs = 0, toTs = Number.MAX_SAFE_INTEGER } = range;
    const picker = new TextPicker(range);
    for (const segment of select.iterate(runId, protocol, fromSeq, toSeq, fromTs, toTs, runId, protocol, fromSeq) as Iterable<Segment>) {
      if (!picker.add(segment)) break;
    }
    return picker.found;
  };
}

export type ReadLines = (runId: string, protocol: Protocol, afterSeq: number, maxBytes: number) => Lines | null;

export function prepareReadLines(db: Database): ReadLines {
  const select = db.prepare(`SELECT seq_from, seq_to, body FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to > ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY seq_from`);
  return (runId, protocol, afterSeq, maxBytes) => {
    const gatherer = new LineGatherer(afterSeq, maxBytes);
    for (const segment of select.iterate(runId, protocol, afterSeq, runId, protocol, afterSeq + 1) as Iterable<Segment>) {
      if (!gatherer.add(segment)) break;
    }
    return gatherer.take();
  };
}
