// Where a journal ends after a flush; a flush that does not continue it is a broken promise of our own code.
import { invariant } from '../kernel/invariant.js';
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

// What can be said of it without knowing the journal.
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
  let lines = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) lines += 1;
  invariant(
    lines === lastSeq - firstSeq + 1 && bytes.at(-1) === 0x0a,
    `${lastSeq - firstSeq + 1} events are not ${lines} lines`,
  );
}
