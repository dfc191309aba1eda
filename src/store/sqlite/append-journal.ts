// Adds a flush to a run's journal: one row per protocol, holding the lines exactly as they are sent, compressed if they
// are large.
import { extendHeads } from '../extend-heads.js';
import type { JournalFlush, JournalHeads, Lines, Protocol } from '../store.js';
import type { Database } from './open-database.js';
import { packBody } from './pack-body.js';

export type AppendJournal = (runId: string, heads: JournalHeads, flush: JournalFlush) => JournalHeads;

// Call it only inside a transaction that has compared the head.
export function prepareAppend(db: Database): AppendJournal {
  const insert = db.prepare(
    'INSERT INTO segments (run_id, protocol, seq_from, seq_to, ts_from, ts_to, body, packed) VALUES (?, ?, ?, ?, ' +
      '?, ?, ?, ?)',
  );
  const add = (
    runId: string,
    protocol: Protocol,
    { firstSeq, lastSeq, bytes }: Lines,
    firstTs: number,
    lastTs: number,
  ): void => {
    const { body, packed } = packBody(bytes);
    insert.run(runId, protocol, firstSeq, lastSeq, firstTs, lastTs, body, packed);
  };
  return (runId, heads, flush) => {
    const { rasp, fcmp, firstTs, lastTs } = flush;
    const after = extendHeads(heads, flush);
    add(runId, 'rasp', rasp, firstTs, lastTs);
    if (fcmp) add(runId, 'fcmp', fcmp, fcmp.firstTs, lastTs);
    return after;
  };
}

export function sizeOf(journal: JournalFlush | undefined): number {
  return (journal?.rasp.bytes.length ?? 0) + (journal?.fcmp?.bytes.length ?? 0);
}
