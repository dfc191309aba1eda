// A page of stored events for GET …/history: as many as requested or as fit into a large response, and the seq of the
// next one. Damaged parts of the journal are left out and listed.
import { DamagedDataError, damageIn, readStoredJson } from '../kernel/stored-json.js';
import { charsIn, explainLine, readReadable, viewPiece, type DamagedPiece } from '../journal/read-readable.js';
import { yieldToOthers } from '../process/yield-to-others.js';
import type { Protocol, ReadRange, Store } from '../store/store.js';

// The limits of one read, which takes one event-loop tick.
const CHUNK = 200;
const CHUNK_CHARS = 500_000;
const MAX_CHARS = 2_000_000;

export interface HistoryRequest {
  readonly runId: string;
  readonly protocol: Protocol;
  readonly range: Omit<ReadRange, 'limit'>;
  readonly limit: number;
  // The seq of the last event of the run.
  readonly head: number;
}

export interface HistoryLines {
  readonly lines: readonly string[];
  readonly next: number | null;
  readonly damaged: readonly DamagedPiece[];
}

export async function readHistory(store: Store, request: HistoryRequest): Promise<HistoryLines> {
  try {
    return await readWhole(store, request);
  } catch (error) {
    if (!damageIn(error)) throw error;
    return readDamaged(store, request);
  }
}

async function readWhole(store: Store, { runId, protocol, range, limit, head }: HistoryRequest): Promise<HistoryLines> {
  const lines: string[] = [];
  let chars = 0;
  for (let from: number | null = null; ;) {
    const page = await store.readJournal(runId, protocol, {
      ...range,
      limit: CHUNK,
      maxChars: CHUNK_CHARS,
      ...(from === null ? {} : { fromSeq: from }),
    });
    // Times never go back, so a range of time has no gaps.
    const first: number =
      from ??
      (range.fromTs === undefined
        ? Math.max(1, range.fromSeq ?? 1)
        : (readStoredJson(page[0] ?? '{"seq":0}') as { seq: number }).seq);
    for (const [index, line] of page.entries()) {
      const seq = first + index;
      const problem = explainLine(line, seq);
      if (problem !== null) throw new DamagedDataError(`event ${seq}: ${problem.text}`);
      if (lines.length === limit || chars > MAX_CHARS) return { lines, next: seq, damaged: [] };
      lines.push(line);
      chars += line.length;
      from = seq + 1;
    }
    if (page.length >= CHUNK || charsIn(page) >= CHUNK_CHARS) {
      await yieldToOthers();
      continue;
    }
    checkEnd(from ?? range.fromSeq ?? 1, range, head);
    return { lines, next: null, damaged: [] };
  }
}

// `next` is the first event that was not read. With a range of time, events may end earlier.
function checkEnd(next: number, { toSeq = Infinity, fromTs, toTs }: Omit<ReadRange, 'limit'>, head: number): void {
  if (fromTs !== undefined || toTs !== undefined) return;
  if (next <= Math.min(toSeq, head))
    throw new DamagedDataError(`events after ${next - 1} are missing from the journal`);
}

// Read in chunks, so that a response stays within the usual size.
async function readDamaged(
  store: Store,
  { runId, protocol, range, limit, head }: HistoryRequest,
): Promise<HistoryLines> {
  const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER } = range;
  const lines: string[] = [];
  const damaged: DamagedPiece[] = [];
  let chars = 0;
  let lastSeq = Math.max(0, fromSeq - 1);
  const end = Math.min(toSeq, head);
  while (lastSeq < end && lines.length < limit && chars <= MAX_CHARS) {
    const piece = await readReadable(store, {
      runId,
      protocol,
      afterSeq: lastSeq,
      limit: Math.min(CHUNK, limit - lines.length),
      maxChars: CHUNK_CHARS,
      head,
    });
    await yieldToOthers();
    if (piece.lastSeq <= lastSeq) break;
    lastSeq = piece.lastSeq;
    damaged.push(...piece.damaged.map(viewPiece));
    for (const line of piece.lines.filter((each) => isWithin(each, range))) {
      lines.push(line);
      chars += line.length;
    }
  }
  return { lines, next: lastSeq < end ? lastSeq + 1 : null, damaged };
}

// A line that is not JSON cannot be part of the response.
function isWithin(
  line: string,
  { toSeq = Number.MAX_SAFE_INTEGER, fromTs = 0, toTs = Number.MAX_SAFE_INTEGER }: Omit<ReadRange, 'limit'>,
): boolean {
  try {
    const { seq, ts } = readStoredJson(line) as { seq: number; ts: string };
    return seq <= toSeq && Date.parse(ts) >= fromTs && Date.parse(ts) <= toTs;
  } catch (error) {
    if (!damageIn(error)) throw error;
    return false;
  }
}
