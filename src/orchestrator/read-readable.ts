// Reads a journal of which a piece may be damaged: what can be read comes in order, and each damaged piece is reported once.
import { damageIn } from '../kernel/stored-json.js';
import type { Protocol, Store } from '../store/store.js';

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
}

export async function readReadable(store: Source, { runId, protocol, afterSeq, limit }: JournalPart): Promise<ReadableLines> {
  try {
    const lines = await store.readJournal(runId, protocol, { fromSeq: afterSeq + 1, limit });
    return { lines, lastSeq: afterSeq + lines.length, damaged: [] };
  } catch (error) {
    if (!damageIn(error)) throw error;
    return readByPiece(store, { runId, protocol, afterSeq, limit });
  }
}

async function readByPiece(store: Source, { runId, protocol, afterSeq, limit }: JournalPart): Promise<ReadableLines> {
  const lines: string[] = [];
  const damaged: DamagedPiece[] = [];
  let lastSeq = afterSeq;
  for (const { seq_to: to } of await store.listSegments(runId, protocol)) {
    if (to <= lastSeq) continue;
    if (lines.length >= limit) break;
    try {
      const found = await store.readJournal(runId, protocol, { fromSeq: lastSeq + 1, toSeq: to, limit: limit - lines.length });
      lines.push(...found);
      lastSeq += found.length;
      // The rest of the piece comes with the next call.
      if (lastSeq < to && lines.length < limit) lastSeq = to;
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      damaged.push({ from_seq: lastSeq + 1, to_seq: to, message: damage.message });
      lastSeq = to;
    }
  }
  return { lines, lastSeq, damaged };
}
