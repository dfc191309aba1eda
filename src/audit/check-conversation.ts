// Rebuilds the conversation from the observed events and compares it with the stored one, line by line.
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import type { RaspEvent } from '../rasp/event.js';
import { failed, passed, type MadeCheck } from './check.js';
import type { JournalScan } from './check-journal.js';
import { finding } from './findings.js';

export class ConversationCheck {
  readonly #fold: ConversationFold;
  readonly #scan: JournalScan;
  // Stored lines that were read and not compared yet.
  #stored: readonly string[] = [];
  #at = 0;
  #reading: AsyncGenerator<readonly string[]>;
  #rebuilt = 0;
  #differsAt: number | null = null;

  constructor(runId: string, scan: JournalScan) {
    this.#fold = new ConversationFold(runId);
    this.#scan = scan;
    this.#reading = scan.read();
  }

  // How many lines the observed events give.
  get rebuilt(): number {
    return this.#rebuilt;
  }

  // The first line that differs from the stored conversation, or null.
  get differsAt(): number | null {
    return this.#differsAt;
  }

  // Returns the lines that this event gives.
  async event(event: RaspEvent): Promise<readonly string[]> {
    const lines = this.#fold.push(foldInputOf(event));
    for (const line of lines) {
      this.#rebuilt += 1;
      if (this.#differsAt !== null) continue;
      if (this.#at === this.#stored.length) await this.#readOn();
      if (this.#stored[this.#at] !== line) this.#differsAt = this.#rebuilt;
      this.#at += 1;
    }
    return lines;
  }

  async #readOn(): Promise<boolean> {
    let next = await this.#reading.next();
    if (next.done === true) {
      // More lines may have been stored since the generator ended.
      this.#reading = this.#scan.read();
      next = await this.#reading.next();
    }
    if (next.done === true) return false;
    this.#stored = next.value;
    this.#at = 0;
    return true;
  }

  // Reads the rest of the stored conversation. Returns whether lines were stored that no event has given.
  async readRest(): Promise<boolean> {
    let isLonger = this.#at < this.#stored.length;
    while (await this.#readOn()) isLonger = true;
    if (isLonger) this.#differsAt ??= this.#rebuilt + 1;
    return isLonger;
  }

  finish(): MadeCheck {
    return this.#differsAt === null
      ? passed('conversation', finding('conversation.passed', { events: this.#scan.lines }))
      : failed('conversation', finding('conversation.differs', { event: this.#differsAt }));
  }
}
