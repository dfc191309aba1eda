// Adds a flush to a run's journal: one row per protocol, holding the lines exactly as they are sent.
import { invariant } from '../../kernel/invariant.js';
import { nextDigest } from '../digest.js';
import type { JournalFlush, JournalHeads, Lines } from '../store.js';
import type { Database } from './open-database.js';

export type AppendJournal = (runId: string, heads: JournalHeads, flush: JournalFlush) => JournalHeads;

// Only inside a transaction that has compared the head before.
export function prepareAppend(db: Database): AppendJournal {
  const insert = db.prepare('INSERT INTO segments (run_id, protocol, seq_from, seq_to, ts_from, ts_to, body) VALUES (?, ?, ?, ?, ?, ?, ?)');
  return (runId, heads, { rasp, fcmp, firstTs, lastTs }) => {
    checkLines(rasp, heads.rasp_seq);
    insert.run(runId, 'rasp', rasp.firstSeq, rasp.lastSeq, firstTs, lastTs, rasp.bytes);
    if (fcmp) {
      checkLines(fcmp, heads.fcmp_seq);
      insert.run(runId, 'fcmp', fcmp.firstSeq, fcmp.lastSeq, fcmp.firstTs, lastTs, fcmp.bytes);
    }
    invariant(firstTs >= heads.ts && lastTs >= firstTs, 'the times of a run never go back');
    return { rasp_seq: rasp.lastSeq, fcmp_seq: fcmp?.lastSeq ?? heads.fcmp_seq, ts: lastTs, digest: nextDigest(heads.digest, rasp.bytes) };
  };
}

function checkLines({ firstSeq, lastSeq, bytes }: Lines, head: number): void {
  invariant(firstSeq === head + 1 && lastSeq >= firstSeq, `a journal that ends at ${head} is not continued by ${firstSeq} to ${lastSeq}`);
  let lines = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) lines += 1;
  invariant(lines === lastSeq - firstSeq + 1 && bytes.at(-1) === 0x0a, `${lastSeq - firstSeq + 1} events are not ${lines} lines`);
}
