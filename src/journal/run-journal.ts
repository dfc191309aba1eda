// What the writer of a run has to add to its journal: drafts become stored text with seq and time, RASP and FCMP
// together. It runs ahead of the store by what was not taken or not committed yet; after a refused commit it is thrown
// away.
import { toTimestamp, type Clock } from '../kernel/clock.js';
import { ConversationFold, foldInputOfDraft } from '../fcmp/fold.js';
import { FOLD_VERSION } from '../fcmp/event.js';
import { createFcmpStamp, type FcmpDraft, type FcmpStamp } from '../fcmp/stamp.js';
import type { RaspDraft } from '../rasp/draft.js';
import { createStamp, type Stamp } from '../rasp/stamp.js';
import type { JournalFlush, JournalHeads } from '../store/store.js';
import { EventBuffer } from './event-buffer.js';

export interface JournalOwner {
  readonly runId: string;
  readonly engine: string;
  readonly attempt: number;
}

export class RunJournal {
  readonly #owner: JournalOwner;
  readonly #clock: Clock;
  readonly #stamp: Stamp;
  readonly #fold: ConversationFold;
  readonly #stampFcmp: FcmpStamp;
  readonly #rasp = new EventBuffer();
  readonly #fcmp = new EventBuffer();
  // The heads as they will be when everything is committed.
  #raspSeq: number;
  #fcmpSeq: number;
  #ts: number;
  // Where the next flush begins.
  #firstRasp: number;
  #firstFcmp: number;
  #firstTs = 0;
  // A line that was held back has the time at which it was printed, which may be long before this flush.
  #earliest = '';

  // Within a turn a fold remembers more than its count: whoever goes on there brings one that has read the journal.
  constructor(
    owner: JournalOwner,
    heads: JournalHeads,
    clock: Clock,
    fold = new ConversationFold(owner.runId, { version: FOLD_VERSION, seq: heads.fcmp_seq }),
  ) {
    this.#owner = owner;
    this.#clock = clock;
    this.#stamp = createStamp(owner);
    this.#fold = fold;
    this.#stampFcmp = createFcmpStamp(owner.runId);
    this.#raspSeq = heads.rasp_seq;
    this.#fcmpSeq = heads.fcmp_seq;
    this.#ts = heads.ts;
    this.#firstRasp = heads.rasp_seq + 1;
    this.#firstFcmp = heads.fcmp_seq + 1;
  }

  // How many events wait to be taken.
  get pending(): number {
    return this.#raspSeq - this.#firstRasp + 1;
  }

  // Of the last event, stored or not.
  get lastTs(): number {
    return this.#ts;
  }

  // How long they are as RASP.
  get pendingBytes(): number {
    return this.#rasp.length;
  }

  add(drafts: readonly RaspDraft[]): void {
    if (drafts.length === 0) return;
    // The clock may jump back; the times of a run never do.
    this.#ts = Math.max(this.#ts, this.#clock.now());
    this.addAtLastTime(drafts);
  }

  // With the time of the last event, for what is only the absence of another one.
  addAtLastTime(drafts: readonly RaspDraft[]): void {
    const ts = toTimestamp(this.#ts);
    if (this.pending === 0) {
      this.#firstTs = this.#ts;
      this.#earliest = ts;
    }
    for (const draft of drafts) {
      this.#raspSeq += 1;
      this.#stamp(draft, this.#raspSeq, ts, this.#rasp);
      for (const event of this.#fold.fold(foldInputOfDraft(draft, this.#raspSeq, ts, this.#owner.attempt)))
        this.#converse(event);
    }
  }

  #converse(event: FcmpDraft): void {
    this.#fcmpSeq += 1;
    this.#stampFcmp(event, this.#fcmp);
    if (event.ts < this.#earliest) this.#earliest = event.ts;
  }

  // Everything that was added since the last time, for one transaction; null if there is nothing.
  take(): JournalFlush | null {
    if (this.pending === 0) return null;
    const fcmp =
      this.#fcmp.length === 0
        ? null
        : {
            firstSeq: this.#firstFcmp,
            lastSeq: this.#fcmpSeq,
            bytes: Buffer.from(this.#fcmp.take()),
            firstTs: Date.parse(this.#earliest),
          };
    // A copy: the buffer is used again before the store may be done with it.
    const rasp = { firstSeq: this.#firstRasp, lastSeq: this.#raspSeq, bytes: Buffer.from(this.#rasp.take()) };
    this.#firstRasp = this.#raspSeq + 1;
    this.#firstFcmp = this.#fcmpSeq + 1;
    return { rasp, fcmp, firstTs: this.#firstTs, lastTs: this.#ts };
  }
}
