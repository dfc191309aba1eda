// Computes the end of a journal after a flush. A flush that does not continue the journal is a defect of Parley.
import { invariant } from '../kernel/invariant.js';
import { countLines } from './cut-segments.js';
import { nextDigest } from './digest.js';
import type { JournalFlush, JournalHeads, Lines } from './store.js';

export function extendHeads(heads: JournalHeads, flush: JournalFlush): JournalHeads {
  const { rasp, fcmp, firstTs, lastTs } = flush;
  checkFlush(flush);
  checkContinues(rasp, heads.rasp_seq);
  if (fcmp) checkContinues(fcmp, heads.fcmp_seq);
  invariant(firstTs >= heads.ts, 'the times of a run never go back');
  return {
    rasp_seq: rasp.lastSeq,
    fcmp_seq: fcmp?.lastSeq ?? heads.fcmp_seq,
    ts: lastTs,
    digest: nextDigest(heads.digest, rasp.bytes),
  };
}

// The checks that need no knowledge of the journal.
export function checkFlush({ rasp, fcmp, firstTs, lastTs }: JournalFlush): void {
  checkLines(rasp);
  if (fcmp) checkLines(fcmp);
  invariant(lastTs >= firstTs, 'the times of a run never go back');
}

function checkContinues({ firstSeq, lastSeq }: Lines, head: number): void {
  invariant(
    firstSeq === head + 1 && lastSeq >= firstSeq,
    `a journal that ends at ${head} is not continued by ${firstSeq} to ${lastSeq}`,
  );
}

function checkLines({ firstSeq, lastSeq, bytes }: Lines): void {
  const lines = countLines(bytes);
  invariant(
    lines === lastSeq - firstSeq + 1 && bytes.at(-1) === 0x0a,
    `${lastSeq - firstSeq + 1} events are not ${lines} lines`,
  );
}
