// Reads a journal of which a part may be damaged: everything readable comes in order, and each damaged or missing part
// is reported once.
import { isObject, parseJson } from '../kernel/json.js';
import { damageIn } from '../kernel/stored-json.js';
import type { Protocol, SegmentRange, Store } from '../store/store.js';

export interface DamagedPiece {
  readonly from_seq: number;
  readonly to_seq: number;
  readonly message: string;
}

export interface ReadableLines {
  readonly lines: readonly string[];
  // Everything up to this event was read or is damaged.
  readonly lastSeq: number;
  readonly damaged: readonly DamagedPiece[];
}

type Source = Pick<Store, 'readJournal' | 'listSegments'>;

export interface JournalPart {
  readonly runId: string;
  readonly protocol: Protocol;
  readonly afterSeq: number;
  readonly limit: number;
  // The last event by the row of the run, which must be read before the journal: a journal that ends earlier is
  // damaged.
  readonly head: number;
}

export async function readReadable(store: Source, part: JournalPart): Promise<ReadableLines> {
  const { head } = part;
  const { lines, lastSeq, damaged, atEnd } = await readPieces(store, part);
  if (!atEnd || lastSeq >= head) return { lines, lastSeq, damaged };
  return { lines, lastSeq: head, damaged: [...damaged, missingEvents(lastSeq + 1, head)] };
}

// `atEnd`: no event behind these is stored.
type ReadPieces = ReadableLines & { readonly atEnd: boolean };

async function readPieces(store: Source, part: JournalPart): Promise<ReadPieces> {
  const { runId, protocol, afterSeq, limit } = part;
  try {
    const lines = await store.readJournal(runId, protocol, { fromSeq: afterSeq + 1, limit });
    return { ...checkLines(lines, afterSeq), atEnd: lines.length < limit };
  } catch (error) {
    if (!damageIn(error)) throw error;
    return readByPiece(store, part);
  }
}

async function readByPiece(store: Source, { runId, protocol, afterSeq, limit }: JournalPart): Promise<ReadPieces> {
  const lines: string[] = [];
  const damaged: DamagedPiece[] = [];
  let room = limit;
  let lastSeq = afterSeq;
  for (const { seq_from: from, seq_to: to } of withinNext(await store.listSegments(runId, protocol))) {
    if (to <= lastSeq) continue;
    if (room === 0) return { lines, lastSeq, damaged, atEnd: false };
    if (from > lastSeq + 1) damaged.push(missingEvents(lastSeq + 1, from - 1));
    lastSeq = Math.max(lastSeq, from - 1);
    try {
      const found = checkLines(
        await store.readJournal(runId, protocol, { fromSeq: lastSeq + 1, toSeq: to, limit: room }),
        lastSeq,
      );
      room -= found.lastSeq - lastSeq;
      lines.push(...found.lines);
      damaged.push(...found.damaged);
      // The rest of the piece comes with the next call.
      lastSeq = found.lastSeq;
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      damaged.push({ from_seq: lastSeq + 1, to_seq: to, message: damage.message });
      lastSeq = to;
    }
  }
  return { lines, lastSeq, damaged, atEnd: room > 0 };
}

// A damaged end must not hide the pieces behind it.
function withinNext(pieces: readonly SegmentRange[]): SegmentRange[] {
  return pieces.map((piece, index) => ({
    ...piece,
    seq_to: Math.min(piece.seq_to, (pieces[index + 1]?.seq_from ?? Infinity) - 1),
  }));
}

export function missingEvents(from: number, to: number): DamagedPiece {
  return { from_seq: from, to_seq: to, message: 'missing from the journal' };
}

// The first part after an event that cannot be read, by the pieces that are stored; null: nothing is missing up to the
// head.
export function findDamagedPiece(
  segments: readonly SegmentRange[],
  afterSeq: number,
  head: number,
  message: string,
): DamagedPiece | null {
  const piece = withinNext(segments).find(({ seq_to: to }) => to > afterSeq);
  if (!piece) return afterSeq < head ? missingEvents(afterSeq + 1, head) : null;
  if (piece.seq_from > afterSeq + 1) return missingEvents(afterSeq + 1, piece.seq_from - 1);
  return { from_seq: afterSeq + 1, to_seq: piece.seq_to, message };
}

// Leaves out lines that are not the event they should be, and names them.
function checkLines(all: readonly string[], afterSeq: number): ReadableLines {
  const lines: string[] = [];
  const damaged: DamagedPiece[] = [];
  for (const [index, line] of all.entries()) {
    const seq = afterSeq + index + 1;
    const message = explainLine(line, seq);
    const last = damaged.at(-1);
    if (message === null) lines.push(line);
    else if (last?.to_seq === seq - 1 && last.message === message) damaged.splice(-1, 1, { ...last, to_seq: seq });
    else damaged.push({ from_seq: seq, to_seq: seq, message });
  }
  return { lines, lastSeq: afterSeq + all.length, damaged };
}

// Why a line is not the event with this seq; null: it is.
export function explainLine(line: string, seq: number): string | null {
  const event = parseJson(line);
  if (event === undefined) return 'not JSON';
  return isObject(event) && event['seq'] === seq ? null : 'another event is stored in its place';
}

const PAGE = 500;

// All damage of a journal after an event, in words, read page by page.
export async function describeDamage(store: Source, part: Omit<JournalPart, 'limit'>): Promise<string[]> {
  const found: DamagedPiece[] = [];
  for (let { afterSeq } = part; afterSeq < part.head;) {
    const { lastSeq, damaged } = await readReadable(store, { ...part, afterSeq, limit: PAGE });
    found.push(...damaged);
    afterSeq = lastSeq;
  }
  return found.map((piece) => describePiece(part.protocol, piece));
}

// Damaged parts that follow each other as one, for people: a journal may have thousands of pieces.
export function joinPieces(pieces: readonly DamagedPiece[]): DamagedPiece[] {
  const joined: DamagedPiece[] = [];
  let count = 0;
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (last?.to_seq !== piece.from_seq - 1) {
      joined.push(piece);
      count = 1;
      continue;
    }
    count += 1;
    const message = `${count} parts of the journal that follow each other are damaged`;
    joined.splice(-1, 1, { from_seq: last.from_seq, to_seq: piece.to_seq, message });
  }
  return joined;
}

export function describePiece(protocol: Protocol, { from_seq: from, to_seq: to, message }: DamagedPiece): string {
  return `${protocol} events ${from} to ${to}: ${message}`;
}
