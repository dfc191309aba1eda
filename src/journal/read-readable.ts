// Reads a journal that may be partly damaged: yields every readable line in order, and reports each damaged or missing
// part once.
import { damageText } from '../kernel/damage-texts.js';
import { isObject, parseJson } from '../kernel/json.js';
import type { Message } from '../kernel/message.js';
import { damageIn } from '../kernel/stored-json.js';
import type { Protocol, SegmentRange, Store } from '../store/store.js';

// A damaged part as programs get it.
export interface DamagedPiece {
  readonly from_seq: number;
  readonly to_seq: number;
  readonly message: string;
}

// A damaged part as it was found.
export interface FoundPiece {
  readonly from_seq: number;
  readonly to_seq: number;
  readonly problem: Message;
}

export function viewPiece({ from_seq, to_seq, problem }: FoundPiece): DamagedPiece {
  return { from_seq, to_seq, message: problem.text };
}

export interface ReadableLines {
  readonly lines: readonly string[];
  // Everything up to this event was read or is damaged.
  readonly lastSeq: number;
  readonly damaged: readonly FoundPiece[];
}

type Source = Pick<Store, 'readJournal' | 'listSegments'>;

export interface JournalPart {
  readonly runId: string;
  readonly protocol: Protocol;
  readonly afterSeq: number;
  readonly limit: number;
  // Ends the page with the line that reaches this size.
  readonly maxChars?: number;
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

// `atEnd`: no event after these is stored.
type ReadPieces = ReadableLines & { readonly atEnd: boolean };

async function readPieces(store: Source, part: JournalPart): Promise<ReadPieces> {
  const { runId, protocol, afterSeq, limit, maxChars = Infinity } = part;
  try {
    const lines = await store.readJournal(runId, protocol, { fromSeq: afterSeq + 1, limit, maxChars });
    return { ...checkLines(lines, afterSeq), atEnd: lines.length < limit && charsIn(lines) < maxChars };
  } catch (error) {
    if (!damageIn(error)) throw error;
    return readByPiece(store, part);
  }
}

export function charsIn(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0);
}

async function readByPiece(store: Source, part: JournalPart): Promise<ReadPieces> {
  const { runId, protocol, afterSeq, limit, maxChars = Infinity } = part;
  const lines: string[] = [];
  const damaged: FoundPiece[] = [];
  let room = limit;
  let chars = 0;
  let lastSeq = afterSeq;
  for (const { seq_from: from, seq_to: to } of withinNext(await store.listSegments(runId, protocol))) {
    if (to <= lastSeq) continue;
    if (room === 0 || chars >= maxChars) return { lines, lastSeq, damaged, atEnd: false };
    if (from > lastSeq + 1) damaged.push(missingEvents(lastSeq + 1, from - 1));
    lastSeq = Math.max(lastSeq, from - 1);
    try {
      const range = { fromSeq: lastSeq + 1, toSeq: to, limit: room, maxChars: maxChars - chars };
      const texts = await store.readJournal(runId, protocol, range);
      const checked = checkLines(texts, lastSeq);
      room -= checked.lastSeq - lastSeq;
      chars += charsIn(texts);
      lines.push(...checked.lines);
      damaged.push(...checked.damaged);
      // The next call returns the rest of the segment.
      lastSeq = checked.lastSeq;
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      damaged.push({ from_seq: lastSeq + 1, to_seq: to, problem: damage.damage });
      lastSeq = to;
    }
  }
  return { lines, lastSeq, damaged, atEnd: room > 0 && chars < maxChars };
}

// A damaged end of a segment must not hide the segments after it.
function withinNext(pieces: readonly SegmentRange[]): SegmentRange[] {
  return pieces.map((piece, index) => ({
    ...piece,
    seq_to: Math.min(piece.seq_to, (pieces[index + 1]?.seq_from ?? Infinity) - 1),
  }));
}

function missingEvents(from: number, to: number): FoundPiece {
  return { from_seq: from, to_seq: to, problem: damageText('damage.missing') };
}

// Returns the first unreadable part after an event, according to the stored segments; null if nothing is missing up to
// the head.
export function findDamagedPiece(
  segments: readonly SegmentRange[],
  afterSeq: number,
  head: number,
  message: string,
): DamagedPiece | null {
  const piece = withinNext(segments).find(({ seq_to: to }) => to > afterSeq);
  if (!piece) return afterSeq < head ? viewPiece(missingEvents(afterSeq + 1, head)) : null;
  if (piece.seq_from > afterSeq + 1) return viewPiece(missingEvents(afterSeq + 1, piece.seq_from - 1));
  return { from_seq: afterSeq + 1, to_seq: piece.seq_to, message };
}

// Leaves out lines that are not the expected event, and reports them.
function checkLines(all: readonly string[], afterSeq: number): ReadableLines {
  const lines: string[] = [];
  const damaged: FoundPiece[] = [];
  for (const [index, line] of all.entries()) {
    const seq = afterSeq + index + 1;
    const problem = explainLine(line, seq);
    const last = damaged.at(-1);
    if (problem === null) lines.push(line);
    else if (last?.to_seq === seq - 1 && last.problem.key === problem.key)
      damaged.splice(-1, 1, { ...last, to_seq: seq });
    else damaged.push({ from_seq: seq, to_seq: seq, problem });
  }
  return { lines, lastSeq: afterSeq + all.length, damaged };
}

// Explains why a line is not the event with this seq; null if it is.
export function explainLine(line: string, seq: number): Message | null {
  const event = parseJson(line);
  if (event === undefined) return damageText('damage.line_not_json');
  return isObject(event) && event['seq'] === seq ? null : damageText('damage.other_event');
}

const PAGE_EVENTS = 500;
const PAGE_CHARS = 1_000_000;

// Yields everything after an event page by page: a page is bounded in events and in size.
export async function* everyReadable(
  store: Source,
  part: Omit<JournalPart, 'limit' | 'maxChars'>,
): AsyncGenerator<ReadableLines> {
  for (let { afterSeq } = part; ;) {
    const page = await readReadable(store, { ...part, afterSeq, limit: PAGE_EVENTS, maxChars: PAGE_CHARS });
    if (page.lastSeq === afterSeq) return;
    afterSeq = page.lastSeq;
    yield page;
    // Lets other work of this process run between two pages, for example the error of a closed pipe.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// Describes all damage of a journal after an event.
export async function describeDamage(store: Source, part: Omit<JournalPart, 'limit'>): Promise<Message[]> {
  const problems: Message[] = [];
  for await (const { damaged } of everyReadable(store, part))
    problems.push(...damaged.map((piece) => describePiece(part.protocol, piece)));
  return problems;
}

// Joins damaged parts that follow each other, for people: a journal may have thousands of pieces.
export class PieceJoiner {
  #last: FoundPiece | null = null;
  #count = 0;

  // Returns the parts before this one if this one does not follow them.
  add(piece: FoundPiece): FoundPiece | null {
    const last = this.#last;
    if (last?.to_seq !== piece.from_seq - 1) {
      this.#last = piece;
      this.#count = 1;
      return last;
    }
    this.#count += 1;
    const problem = damageText('damage.several', { count: this.#count });
    this.#last = { from_seq: last.from_seq, to_seq: piece.to_seq, problem };
    return null;
  }

  // Returns the last parts.
  end(): FoundPiece | null {
    const last = this.#last;
    this.#last = null;
    return last;
  }
}

export function describePiece(journal: Protocol, { from_seq: from, to_seq: to, problem }: FoundPiece): Message {
  return damageText('damage.piece', { journal, from, to, problem });
}
