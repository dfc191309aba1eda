// Adds a flush to a run's journal: one row per protocol, holding the lines exactly as they are sent, compressed if they
// are large.
import { extendHeads } from '../extend-heads.js';
import type { JournalFlush, JournalHeads, Lines, Protocol } from '../store.js';
import type { Database } from './open-database.js';
import { packBody } from './pack-body.js';
import { prepareInsert } from './recent/merge-flushes.js';

export type AppendJournal = (runId: string, heads: JournalHeads, flush: JournalFlush) => JournalHeads;

// Call it only inside a transaction that has compared the head.
export function prepareAppend(db: Database): AppendJournal {
  const insert = prepareInsert(db);
  const add = (runId: string, protocol: Protocol, lines: Lines & { readonly firstTs: number }, lastTs: number): void =>
    insert(runId, protocol, {
      seq_from: lines.firstSeq,
      seq_to: lines.lastSeq,
      ts_from: lines.firstTs,
      ts_to: lastTs,
      ...packBody(lines.bytes),
      flushes: null,
    });
  return (runId, heads, flush) => {
    const { rasp, fcmp, firstTs, lastTs } = flush;
    const after = extendHeads(heads, flush);
    add(runId, 'rasp', { ...rasp, firstTs }, lastTs);
    if (fcmp) add(runId, 'fcmp', fcmp, lastTs);
    return after;
  };
}

export function sizeOf(journal: JournalFlush | undefined): number {
  return (journal?.rasp.bytes.length ?? 0) + (journal?.fcmp?.bytes.length ?? 0);
}
