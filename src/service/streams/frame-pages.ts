// Builds pages of SSE frames from the lines of a journal: a frame for each line, with its seq as the id.
import { DamagedDataError } from '../../kernel/stored-json.js';
import { countLines, endWithin } from '../../store/cut-segments.js';
import type { Lines } from '../../store/store.js';

// The lines of a page: the maximum that a slow reader keeps in memory, unless a single line is longer.
const PAGE_BYTES = 64 * 1024;
const INITIAL_BYTES = 4 * PAGE_BYTES;
// A larger area is released after use.
const KEEP_BYTES = 1024 * 1024;
// "id: ", 16 digits, "\ndata: " and an empty line.
const FRAME_BYTES = 4 + 16 + 7 + 1;
const LF = 0x0a;
const ZERO = 0x30;
const ID = Buffer.from('id: ');
const DATA = Buffer.from('\ndata: ');

export interface FramedPage {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly bytes: Buffer;
}

// Frames are built here, with the lines at the end: moving bytes within a buffer allocates nothing.
let area = Buffer.allocUnsafeSlow(INITIAL_BYTES);

// Throws a DamagedDataError if there are more or fewer lines than events, because the ids would be wrong.
export function* framePages(lines: Lines): Generator<FramedPage, void> {
  const { firstSeq, lastSeq, bytes } = lines;
  let seq = firstSeq;
  for (let from = 0; from < bytes.length;) {
    const to = bytes.length - from <= PAGE_BYTES ? bytes.length : endWithin(bytes, from, PAGE_BYTES, true);
    const count = countLines(bytes, from, to);
    const last = seq + count - 1;
    if (count === 0 || last > lastSeq || (to === bytes.length && last !== lastSeq) || bytes[to - 1] !== LF)
      throw damaged(lines);
    yield { firstSeq: seq, lastSeq: last, bytes: frame(bytes.subarray(from, to), seq, last) };
    from = to;
    seq = last + 1;
  }
}

// Copied from the area: a page has its own memory, of exactly its size.
function frame(lines: Buffer, firstSeq: number, lastSeq: number): Buffer {
  const need = 2 * lines.length + (lastSeq - firstSeq + 1) * FRAME_BYTES;
  if (area.length < need) area = Buffer.allocUnsafeSlow(need);
  const shared = area;
  let from = shared.length - lines.length;
  shared.set(lines, from);
  let at = 0;
  for (let seq = firstSeq; seq <= lastSeq; seq += 1) {
    for (let index = 0; index < ID.length; index += 1) shared[at + index] = ID[index] as number;
    at = writeDigits(shared, at + ID.length, seq);
    for (let index = 0; index < DATA.length; index += 1) shared[at + index] = DATA[index] as number;
    at += DATA.length;
    const end = shared.indexOf(LF, from) + 1;
    shared.copyWithin(at, from, end);
    at += end - from;
    shared[at] = LF;
    at += 1;
    from = end;
  }
  const page = Buffer.allocUnsafeSlow(at);
  shared.copy(page, 0, 0, at);
  if (shared.length > KEEP_BYTES) area = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  return page;
}

// Returns where the digits end.
function writeDigits(bytes: Buffer, at: number, value: number): number {
  let end = at + 1;
  for (let limit = 10; value >= limit; limit *= 10) end += 1;
  for (let digit = end - 1, rest = value; digit >= at; digit -= 1) {
    const tenth = Math.floor(rest / 10);
    bytes[digit] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  return end;
}

function damaged({ firstSeq, lastSeq, bytes }: Lines): DamagedDataError {
  return new DamagedDataError(
    `the journal has ${countLines(bytes)} lines where events ${firstSeq} to ${lastSeq} should stand`,
  );
}
