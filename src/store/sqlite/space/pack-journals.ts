// Rewrites the segments of a run in as few compressed rows as possible. A merged row remembers where each flush ends,
// so the digest of the journal and every cursor stay the same. Segments that do not hold exactly their events are left
// as they are, so that nothing hides their damage.
import { damageText } from '../../../kernel/damage-texts.js';
import { DamagedDataError } from '../../../kernel/stored-json.js';
import { countLines } from '../../cut-segments.js';
import type { Protocol, SegmentRange, StoredSegment } from '../../store.js';
import type { Database, Statement } from '../open-database.js';
import { LEAST_PACKED_BYTES, PACKED, SMALLEST } from '../pack-body.js';
import { FULL, RANGE, splitRow, type FullRow } from '../read-journal.js';
import { MOST_SEGMENT_BYTES, mergeSegments, prepareInsert } from '../recent/merge-flushes.js';

const PROTOCOLS: readonly Protocol[] = ['rasp', 'fcmp'];
// A single row is written again only if it becomes smaller than this part of it.
const WORTHWHILE_PART = 0.95;
// How many rows are listed at once.
const PAGE = 1000;

interface ListedRow extends SegmentRange {
  readonly id: number;
  readonly bytes: number;
  readonly packed: number;
}

export class JournalPacker {
  readonly #list: Statement;
  readonly #load: Statement;
  readonly #delete: Statement;
  readonly #insert: ReturnType<typeof prepareInsert>;

  constructor(db: Database) {
    this.#list = db.prepare(`SELECT rowid AS id, ${RANGE}, length(body) AS bytes, ${PACKED} FROM segments
      WHERE run_id = ? AND protocol = ? AND segments.seq_from > ? ORDER BY segments.seq_from LIMIT ${PAGE}`);
    this.#load = db.prepare(`SELECT ${FULL} FROM segments WHERE rowid = ?`);
    this.#delete = db.prepare('DELETE FROM segments WHERE rowid = ?');
    this.#insert = prepareInsert(db);
  }

  // Within a transaction, which may be committed and another one begun whenever this yields. Yields how many bytes of
  // events were rewritten. Throws a DamagedDataError at the first damaged segment.
  *pack(runId: string): Generator<number> {
    for (const protocol of PROTOCOLS)
      for (const batch of this.#batches(runId, protocol)) {
        const bytes = this.#rewrite(runId, protocol, batch);
        if (bytes > 0) yield bytes;
      }
  }

  // Rows that fit into one.
  *#batches(runId: string, protocol: Protocol): Generator<readonly ListedRow[]> {
    let batch: ListedRow[] = [];
    let size = 0;
    for (const row of this.#rows(runId, protocol)) {
      const bytes = row.packed || row.bytes;
      if (size + bytes > MOST_SEGMENT_BYTES && batch.length > 0) {
        yield batch;
        batch = [];
        size = 0;
      }
      batch.push(row);
      size += bytes;
    }
    if (batch.length > 0) yield batch;
  }

  *#rows(runId: string, protocol: Protocol): Generator<ListedRow> {
    for (let after = 0; ;) {
      const page = this.#list.all(runId, protocol, after) as unknown as ListedRow[];
      yield* page;
      const last = page.at(-1)?.seq_from ?? 0;
      // Damaged numbers are read as the largest one, so that none follows.
      if (page.length < PAGE || last <= after) return;
      after = last;
    }
  }

  // Returns 0 if the rows are as small as they can be.
  #rewrite(runId: string, protocol: Protocol, batch: readonly ListedRow[]): number {
    const bytes = batch.reduce((sum, row) => sum + row.bytes, 0);
    if (batch.length === 1 && bytes < LEAST_PACKED_BYTES) return 0;
    const flushes = batch.flatMap(({ id }) => splitRow(this.#load.get(id) as unknown as FullRow));
    checkOrder(flushes);
    const merged = mergeSegments(flushes, { effort: SMALLEST });
    if (!merged || (batch.length === 1 && merged.body.length > WORTHWHILE_PART * bytes)) return 0;
    for (const { id } of batch) this.#delete.run(id);
    this.#insert(runId, protocol, merged);
    return merged.packed || merged.body.length;
  }
}

// Each flush has exactly its lines and follows the one before it.
function checkOrder(flushes: readonly StoredSegment[]): void {
  let next = flushes[0]?.seq_from ?? 0;
  for (const { seq_from: from, seq_to: to, body } of flushes) {
    if (from !== next) throw new DamagedDataError(damageText('damage.missing_events', { from: next, to: from - 1 }));
    const count = countLines(body);
    const expected = to - from + 1;
    if (count !== expected || body.at(-1) !== 0x0a)
      throw new DamagedDataError(damageText('damage.piece_count', { from, to, count, expected }));
    next = to + 1;
  }
}
