// The events that a writer adds to the journal of a run: drafts become stored text with seq and time, RASP and FCMP
// together, and the state of the run is folded from them. It is ahead of the store by the events that were not drained
// or not committed yet; discard it after a refused append.
import { toTimestamp, type Clock } from '../kernel/clock.js';
import { ConversationFold, foldInputOfDraft } from '../fcmp/fold.js';
import { FOLD_VERSION } from '../fcmp/event.js';
import { createFcmpStamp, type FcmpDraft, type FcmpStamp } from '../fcmp/stamp.js';
import { ORCHESTRATOR, type RaspDraft } from '../rasp/draft.js';
import { createStamp, type Stamp } from '../rasp/stamp.js';
import { foldRun, isFolded, type FoldedRun } from '../run/run-fold.js';
import type { JournalFlush, JournalHeads, RunAppend } from '../store/store.js';
import { EventBuffer } from './event-buffer.js';

// The store keeps the bytes of small flushes (JournalFlush), so only those of larger ones are used again.
const LARGEST_KEPT = 64 * 1024;
const BLOCK_BYTES = 256 * 1024;
const LARGEST_SPARE = 4 * 1024 * 1024;
// One is being stored while the next is filled.
const MOST_SPARE = 2;

export interface JournalOwner {
  readonly runId: string;
  readonly engine: string;
  readonly attempt: number;
}

export type Drained = Pick<RunAppend, 'before' | 'after'> & { readonly lines: JournalFlush };

// Where a journal continues.
export interface JournalStart {
  readonly heads: JournalHeads;
  readonly state: FoldedRun;
  // Within a turn the fold of the conversation remembers more than its count, so a writer that continues a turn must
  // pass a fold that has read the journal.
  readonly fold?: ConversationFold | undefined;
}

export class RunJournal {
  readonly #owner: JournalOwner;
  readonly #clock: Clock;
  readonly #stamp: Stamp;
  readonly #fold: ConversationFold;
  readonly #stampFcmp: FcmpStamp;
  readonly #rasp = new EventBuffer();
  readonly #fcmp = new EventBuffer();
  readonly #spare: Buffer[] = [];
  // The state once everything drained is committed, and the state once everything added is committed.
  #before: FoldedRun;
  #after: FoldedRun;
  // The heads once everything added is committed.
  #raspSeq: number;
  #fcmpSeq: number;
  #ts: number;
  // The start of the next flush.
  #firstRasp: number;
  #firstFcmp: number;
  #firstTs = 0;
  // A line that was held back has the time at which it was printed, which may be long before this flush.
  #earliest = '';

  constructor(owner: JournalOwner, { heads, state, fold }: JournalStart, clock: Clock) {
    this.#owner = owner;
    this.#clock = clock;
    this.#stamp = createStamp(owner);
    this.#fold = fold ?? new ConversationFold(owner.runId, { version: FOLD_VERSION, seq: heads.fcmp_seq });
    this.#before = state;
    this.#after = state;
    this.#stampFcmp = createFcmpStamp(owner.runId);
    this.#raspSeq = heads.rasp_seq;
    this.#fcmpSeq = heads.fcmp_seq;
    this.#ts = heads.ts;
    this.#firstRasp = heads.rasp_seq + 1;
    this.#firstFcmp = heads.fcmp_seq + 1;
  }

  // The state of the run once everything added is committed.
  get state(): FoldedRun {
    return this.#after;
  }

  // How many events wait to be drained.
  get pending(): number {
    return this.#raspSeq - this.#firstRasp + 1;
  }

  // The time of the last event, stored or not.
  get lastTs(): number {
    return this.#ts;
  }

  // The size of the pending events as RASP.
  get pendingBytes(): number {
    return this.#rasp.length;
  }

  add(drafts: readonly RaspDraft[]): void {
    if (drafts.length === 0) return;
    // The clock may jump back; the times of a run never do.
    this.#ts = Math.max(this.#ts, this.#clock.now());
    this.addAtLastTime(drafts);
  }

  // Adds events with the time of the last event, for events that report that none followed it.
  addAtLastTime(drafts: readonly RaspDraft[]): void {
    const ts = toTimestamp(this.#ts);
    if (this.pending === 0) {
      this.#firstTs = this.#ts;
      this.#earliest = ts;
    }
    for (const draft of drafts) {
      this.#raspSeq += 1;
      this.#stamp(draft, this.#raspSeq, ts, this.#rasp);
      if (draft.parser === ORCHESTRATOR && isFolded(draft.type)) this.#foldState(draft, ts);
      for (const event of this.#fold.fold(foldInputOfDraft(draft, this.#raspSeq, ts, this.#owner.attempt)))
        this.#converse(event);
    }
  }

  #foldState({ type, data }: RaspDraft, ts: string): void {
    this.#after = foldRun(this.#after, { type, data, ts, attempt_number: this.#owner.attempt });
  }

  #converse(event: FcmpDraft): void {
    this.#fcmpSeq += 1;
    this.#stampFcmp(event, this.#fcmp);
    if (event.ts < this.#earliest) this.#earliest = event.ts;
  }

  // Returns everything added since the last call, for one append; null if there is nothing.
  drain(): Drained | null {
    if (this.pending === 0) return null;
    // A copy, because the buffers are reused before the store has finished with it. One allocation for both: small ones
    // are expensive.
    const split = this.#rasp.length;
    const bytes = this.#takeBlock(split + this.#fcmp.length);
    bytes.set(this.#rasp.drain(), 0);
    bytes.set(this.#fcmp.drain(), split);
    const fcmp =
      split === bytes.length
        ? null
        : {
            firstSeq: this.#firstFcmp,
            lastSeq: this.#fcmpSeq,
            bytes: bytes.subarray(split),
            firstTs: Date.parse(this.#earliest),
          };
    const rasp = { firstSeq: this.#firstRasp, lastSeq: this.#raspSeq, bytes: bytes.subarray(0, split) };
    this.#firstRasp = this.#raspSeq + 1;
    this.#firstFcmp = this.#fcmpSeq + 1;
    const before = this.#before;
    this.#before = this.#after;
    return { lines: { rasp, fcmp, firstTs: this.#firstTs, lastTs: this.#ts }, before, after: this.#after };
  }

  #takeBlock(bytes: number): Buffer {
    if (bytes <= LARGEST_KEPT) return Buffer.allocUnsafeSlow(bytes);
    const spare = this.#spare.pop();
    if (spare && spare.length >= bytes) return spare.subarray(0, bytes);
    return Buffer.allocUnsafeSlow(Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES).subarray(0, bytes);
  }

  // Call it when the append of these events has succeeded: nobody needs the bytes any more, so a large block is used
  // again. A new one for each flush would be freed late, and tens of megabytes would wait for that.
  release({ lines }: Drained): void {
    const { buffer } = lines.rasp.bytes;
    const { byteLength: length } = buffer;
    if (length >= BLOCK_BYTES && length <= LARGEST_SPARE && this.#spare.length < MOST_SPARE)
      this.#spare.push(Buffer.from(buffer));
  }
}
