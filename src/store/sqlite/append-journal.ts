// Adds a flush to a run's journal: one row per protocol, holding the lines exactly as they are sent.
import { extendHeads } from '../extend-heads.js';
import type { JournalFlush, JournalHeads } from '../store.js';
import type { Database } from './open-database.js';

export type AppendJournal = (runId: string, heads: JournalHeads, flush: JournalFlush) => JournalHeads;

// Only inside a transaction that has compared the head before.
export function prepareAppend(db: Database): AppendJournal {
  const insert = db.prepare('INSERT INTO segments (run_id, protocol, seq_from, seq_to, ts_from, ts_to, body) VALUES (?, ?, ?, ?, ?, ?, ?)');
  return (runId, heads, flush) => {
    const { rasp, fcmp, firstTs, lastTs } = flush;
    const after = extendHeads(heads, flush);
    insert.run(runId, 'rasp', rasp.firstSeq, rasp.lastSeq, firstTs, lastTs, rasp.bytes);
    if (fcmp) insert.run(runId, 'fcmp', fcmp.firstSeq, fcmp.lastSeq, fcmp.firstTs, lastTs, fcmp.bytes);
    return after;
  };
}
