// Cuts stored segments at their lines, so that readers get the requested lines and not whole flushes. A segment that
// does not hold exactly its events, or a gap between segments, is reported as damage: otherwise events would be lost
// unnoticed or misnumbered.
import { damageText } from '../kernel/damage-texts.js';
import { DamagedDataError, readStoredJson } from '../kernel/stored-json.js';
import type { Lines, ReadRange } from './store.js';

export interface Segment {
  readonly seq_from: number;
  readonly seq_to: number;
  readonly body: Uint8Array;
}

// Collects the texts of a range from segments in order.
export class TextPicker {
  readonly texts: string[] = [];
  readonly #range: ReadRange;
  // The seq with which the next segment must begin (the first one may begin before it); null: with a range of time, the
  // first may be any.
  #next: number | null;
  #chars = 0;

  constructor(range: ReadRange) {
    this.#range = range;
    this.#next = range.fromTs === undefined ? Math.max(1, range.fromSeq ?? 1) : null;
  }

  // Returns whether a further segment may hold more.
  add({ seq_from: seqFrom, seq_to: seqTo, body }: Segment): boolean {
    const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER, fromTs, toTs, limit, maxChars = Infinity } = this.#range;
    const { lines, isCutOff } = splitLines(toBuffer(body));
    if (isCutOff && !this.#range.withGaps) lines.pop();
    if (!this.#range.withGaps) {
      if (this.#next !== null) checkPlace(seqFrom, this.#next);
      checkCount(lines.length, isCutOff, seqFrom, seqTo);
    }
    this.#next = seqTo + 1;
    for (const [index, line] of lines.entries()) {
      const seq = seqFrom + index;
      if (seq < fromSeq || !isWithin(line, fromTs, toTs)) continue;
      if (seq > toSeq || this.texts.length >= limit || this.#chars >= maxChars) return false;
      this.texts.push(line);
      this.#chars += line.length;
    }
    return this.texts.length < limit && this.#chars < maxChars;
  }
}

function isWithin(line: string, fromTs: number | undefined, toTs: number | undefined): boolean {
  if (fromTs === undefined && toTs === undefined) return true;
  const ts = Date.parse((readStoredJson(line) as { ts: string }).ts);
  return ts >= (fromTs ?? 0) && ts <= (toTs ?? Number.MAX_SAFE_INTEGER);
}

// Collects complete lines after a seq: as many as fit, at least one.
export class LineGatherer {
  readonly #afterSeq: number;
  readonly #pieces: Buffer[] = [];
  #lastSeq: number;
  #room: number;

  constructor(afterSeq: number, maxBytes: number) {
    this.#afterSeq = afterSeq;
    this.#lastSeq = afterSeq;
    this.#room = maxBytes;
  }

  // The last event that was collected.
  get lastSeq(): number {
    return this.#lastSeq;
  }

  // Returns whether more lines fit.
  add({ seq_from: seqFrom, seq_to: seqTo, body }: Segment): boolean {
    const bytes = toBuffer(body);
    checkPlace(seqFrom, this.#lastSeq + 1);
    checkCount(countLines(bytes), bytes.at(-1) !== 0x0a, seqFrom, seqTo);
    const from = skipLines(bytes, this.#lastSeq + 1 - seqFrom);
    const whole = bytes.length - from <= this.#room;
    const to = whole ? bytes.length : endWithin(bytes, from, this.#room, this.#pieces.length === 0);
    if (to > from) this.#pieces.push(bytes.subarray(from, to));
    this.#lastSeq = whole ? seqTo : this.#lastSeq + countLines(bytes, from, to);
    this.#room -= to - from;
    return whole && this.#room > 0;
  }

  drain(): Lines | null {
    const [only] = this.#pieces;
    return only === undefined
      ? null
      : {
          firstSeq: this.#afterSeq + 1,
          lastSeq: this.#lastSeq,
          bytes: this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces),
        };
  }
}

// `next` is the required event; a segment may begin before it, but not after it.
function checkPlace(seqFrom: number, next: number): void {
  if (seqFrom > next) throw new DamagedDataError(damageText('damage.missing_events', { from: next, to: seqFrom - 1 }));
}

function checkCount(lines: number, isCutOff: boolean, seqFrom: number, seqTo: number): void {
  const expected = seqTo - seqFrom + 1;
  if (lines !== expected)
    throw new DamagedDataError(damageText('damage.piece_count', { from: seqFrom, to: seqTo, count: lines, expected }));
  if (isCutOff) throw new DamagedDataError(damageText('damage.piece_end', { from: seqFrom, to: seqTo }));
}

export function toBuffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

// The lines of a segment as text. `isCutOff`: the last one has no line end.
export function splitLines(body: Buffer): { readonly lines: string[]; readonly isCutOff: boolean } {
  const lines = body.toString('utf8').split('\n');
  const isCutOff = lines.at(-1) !== '';
  if (!isCutOff) lines.pop();
  return { lines, isCutOff };
}

function skipLines(bytes: Buffer, lines: number): number {
  let at = 0;
  for (let skipped = 0; skipped < lines; skipped += 1) at = bytes.indexOf(0x0a, at) + 1;
  return at;
}

// Returns where the last line ends that fits; the first line is included even if it does not fit.
export function endWithin(bytes: Buffer, from: number, room: number, atLeastOne: boolean): number {
  const end = bytes.lastIndexOf(0x0a, from + room - 1) + 1;
  if (end > from) return end;
  if (!atLeastOne) return from;
  const next = bytes.indexOf(0x0a, from) + 1;
  // A line without an end is damaged: return all the rest.
  return next > from ? next : bytes.length;
}

export function countLines(bytes: Buffer, from = 0, to = bytes.length): number {
  let lines = 0;
  for (let at = bytes.indexOf(0x0a, from); at >= 0 && at < to; at = bytes.indexOf(0x0a, at + 1)) lines += 1;
  return lines;
}
