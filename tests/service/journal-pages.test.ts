// The pages of a journal: which readers share a read and which must not, and which pages are cached in 16 MiB.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { JournalPages } from '../../src/service/streams/journal-pages.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { T0, change, flush, newRun } from '../store/conformance.js';
import { alterStore, alterSummaries } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { createRoot } from '../support/orchestrated.js';

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from + index);

let store: Store;
let close: () => Promise<void>;
let run: RunRecord;

beforeEach(async () => {
  ({ store, close } = await openDataDir(createRoot(), { pid: process.pid }));
  // With the events 1 and 2.
  const outcome = await store.createRun(newRun(1));
  if (!outcome.created) throw new Error(outcome.reason);
  run = outcome.run;
});
afterEach(() => close());

const journal = (protocol: 'rasp' | 'fcmp' = 'rasp') => ({ runId: run.run_id, protocol });

// Pages whose reads have finished, and keep their result until a gate is opened; a second gate reports that a read has
// finished.
function holdReads(isHeld: (read: number) => boolean) {
  const goOn = new Gate();
  const entered = new Gate();
  const held = {
    goOn,
    entered,
    reads: 0,
    pages: new JournalPages(
      alterStore(store, {
        readLines: async (...asked) => {
          held.reads += 1;
          const mine = held.reads;
          const lines = await store.readLines(...asked);
          entered.open();
          if (isHeld(mine)) await goOn.opened;
          return lines;
        },
      }),
    ),
  };
  return held;
}

describe('a read that is under way', () => {
  test('serves all who ask for the same meanwhile', async () => {
    const held = holdReads(() => true);
    const first = held.pages.after(journal(), 0, 0);
    await held.entered.opened;
    const second = held.pages.after(journal(), 0, 0);
    held.goOn.open();
    expect((await first).lastSeq).toBe(2);
    expect(await second).toBe(await first);
    expect(held.reads).toBe(1);
  });

  test('does not serve another protocol or cursor', async () => {
    const held = holdReads(() => true);
    const asked = [
      held.pages.after(journal(), 0, 0),
      held.pages.after(journal('fcmp'), 0, 0),
      held.pages.after(journal(), 1, 0),
    ];
    held.goOn.open();
    expect((await Promise.all(asked)).map(({ bytes }) => bytes?.toString().match(/^id: .*$/gm))).toEqual([
      ['id: 1', 'id: 2'],
      ['id: 1', 'id: 2'],
      ['id: 2'],
    ]);
    expect(held.reads).toBe(3);
  });

  test('does not serve one who knows of a commit that came after it began', async () => {
    const held = holdReads((read) => read === 1);
    const before = held.pages.after(journal(), 2, 0);
    await held.entered.opened;
    expect(await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }))).toMatchObject({ committed: true });
    const after = held.pages.after(journal(), 2, 1);
    held.goOn.open();
    expect(await before).toEqual({ bytes: null, lastSeq: 2, ended: null });
    expect((await after).bytes?.toString()).toMatch(/^id: 3\ndata: \{"seq":3,.*\}\n\n$/s);
  });

  test('is not remembered when it failed or found nothing', async () => {
    let reads = 0;
    const pages = new JournalPages(
      alterStore(store, {
        readLines: async (...asked) => {
          reads += 1;
          if (reads === 1) throw new Error('the disk is gone');
          return store.readLines(...asked);
        },
      }),
    );
    await expect(pages.after(journal(), 2, 0)).rejects.toThrow('the disk is gone');
    expect((await pages.after(journal(), 2, 0)).bytes).toBeNull();
    await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    expect((await pages.after(journal(), 2, 0)).lastSeq).toBe(3);
    expect(reads).toBe(3);
  });
});

describe('the pages that are kept', () => {
  // Sixteen of these fit, including framing and overhead, and no seventeenth.
  const LINE = Buffer.from(`${' '.repeat(1024 * 1024 - 1024)}\n`);
  const FITTING = 16;
  // Each adds 8 MiB to the limit, up to 16 MiB.
  const READERS = 10;

  // An endless journal, of which each page is about 1 MiB. `reads` are the cursors that the store was asked for.
  let reads: number[];
  let pages: JournalPages;
  let hold: (cursor: number) => Promise<void>;
  let line: Buffer;
  beforeEach(() => {
    reads = [];
    line = LINE;
    hold = async () => {};
    pages = new JournalPages(
      alterStore(store, {
        ...alterSummaries(store, { loadRun: async () => ({ ...run, truncated: [] }) }),
        readLines: async (_run, _protocol, after) => {
          reads.push(after);
          await hold(after);
          return { firstSeq: after + 1, lastSeq: after + 1, bytes: line };
        },
      }),
    );
    for (let reader = 0; reader < READERS; reader += 1) pages.join(journal());
  });

  const look = (cursor: number, version = 0) => pages.after(journal(), cursor, version);

  // Which of these are not cached. Each check reads the page, so check the latest first.
  async function missing(cursors: readonly number[]): Promise<number[]> {
    reads = [];
    for (const cursor of cursors) await look(cursor);
    return reads;
  }

  test('are 16 MiB, and not read again', async () => {
    expect(await missing(range(0, FITTING))).toHaveLength(FITTING);
    expect(await missing(range(0, FITTING))).toEqual([]);
    // The seventeenth replaces the first, which then replaces the second.
    expect(await missing([FITTING, 0, FITTING, 1])).toEqual([FITTING, 0, 1]);
  });

  test('are 8 MiB for one reader, for whom a page is forgotten once it was read', async () => {
    const few = new JournalPages(
      alterStore(store, {
        ...alterSummaries(store, { loadRun: async () => ({ ...run, truncated: [] }) }),
        readLines: async (_run, _protocol, after) => {
          reads.push(after);
          return { firstSeq: after + 1, lastSeq: after + 1, bytes: line };
        },
      }),
    );
    few.join(journal());
    const lookFew = (cursor: number) => few.after(journal(), cursor, 0);
    for (const cursor of range(0, 9)) await lookFew(cursor);
    reads = [];
    // The first was evicted. The others are read a last time.
    for (const cursor of [...range(1, 8), 0]) await lookFew(cursor);
    expect(reads).toEqual([0]);
    reads = [];
    for (const cursor of [8, 1]) await lookFew(cursor);
    expect(reads).toEqual([8, 1]);
  });

  test('are still 16 MiB after many were forgotten', async () => {
    await missing(range(0, 50));
    expect(await missing(range(50 - FITTING, FITTING))).toEqual([]);
    expect(await missing([50 - FITTING - 1])).toHaveLength(1);
  });

  test('do not count twice what two reads have brought', async () => {
    for (const cursor of range(0, FITTING)) await Promise.all([look(cursor, 0), look(cursor, 1)]);
    expect(reads).toHaveLength(2 * FITTING);
    expect(await missing(range(0, FITTING))).toEqual([]);
    // Nor too few: there is no room for more.
    expect(await missing([FITTING, 0])).toEqual([FITTING, 0]);
  });

  test('are not kept by the ten thousand because they are short', async () => {
    line = Buffer.from('{}\n');
    await missing(range(0, 33_000));
    expect(await missing([0])).toEqual([0]);
    expect(await missing([32_999, 5000])).toEqual([]);
  });

  test('lose the one that was not used for longest first', async () => {
    await missing(range(0, FITTING));
    expect(await missing([0, FITTING, 0, 1])).toEqual([FITTING, 1]);
  });

  test('count one as used when a second read brings it again', async () => {
    const entered = new Gate();
    const goOn = new Gate();
    hold = () => {
      entered.open();
      return goOn.opened;
    };
    const slow = look(0, 0);
    await entered.opened;
    hold = async () => {};
    await look(0, 1);
    await missing(range(1, FITTING - 1));
    goOn.open();
    await slow;
    expect(await missing([FITTING, 0, 1])).toEqual([FITTING, 1]);
  });
});

const framesIn = (bytes: Buffer | null): string[] => bytes?.toString().match(/^id: .*$/gm) ?? [];

function countReads(changes: Partial<Store> = {}) {
  const counted = {
    reads: [] as string[],
    pages: new JournalPages(
      alterStore(store, {
        ...changes,
        readLines: (runId, protocol, after, bytes) => {
          counted.reads.push(`${protocol} ${after}`);
          return store.readLines(runId, protocol, after, bytes);
        },
      }),
    ),
  };
  return counted;
}

async function readOn(pages: JournalPages, cursor: number): Promise<string[]> {
  const frames: string[] = [];
  for (let seq = cursor; ;) {
    const page = await pages.after(journal(), seq, seq);
    if (!page.bytes) return frames;
    expect(page.bytes.length).toBeLessThan(100 * 1024);
    frames.push(...framesIn(page.bytes));
    seq = page.lastSeq;
  }
}

// In place of the events of a damaged segment.
const SKIPPED = /^event: damaged\ndata: \{"from_seq":1,"to_seq":2,"message":"[^"]+"\}\n\n$/;

test('a piece with unterminated lines is skipped, and its missing events are reported', async () => {
  const bytes = Buffer.alloc(200 * 1024, 'x');
  const pages = new JournalPages(
    alterStore(store, {
      readLines: async (_run, _protocol, after) => (after === 0 ? { firstSeq: 1, lastSeq: 3, bytes } : null),
    }),
  );
  const page = await pages.after(journal(), 0, 0);
  expect([page.bytes?.toString(), page.lastSeq]).toEqual([expect.stringMatching(SKIPPED), 2]);
});

test('a piece with more or fewer lines than it says is skipped as well, however many that is', async () => {
  for (const lastSeq of [1, 3, 10_000_000, Number.MAX_SAFE_INTEGER]) {
    const pages = new JournalPages(
      alterStore(store, { readLines: async () => ({ firstSeq: 1, lastSeq, bytes: Buffer.from('{}\n{}\n') }) }),
    );
    expect((await pages.after(journal(), 0, 0)).bytes?.toString(), String(lastSeq)).toMatch(SKIPPED);
  }
});

describe('pages of new events', () => {
  // Events 3 to 3,002 of RASP: more than one page and less than a read.
  const MANY = 3000;

  test('is not read again for those who read the run, in pages that are no larger than others', async () => {
    const { pages, reads } = countReads();
    const leave = pages.join(journal());
    await store.append(change(run, { journal: flush(3, MANY, null, T0 + 10) }));
    expect(await readOn(pages, 2)).toEqual(range(3, MANY).map((seq) => `id: ${seq}`));
    // Nor that the journal has ended.
    expect(reads).toEqual([]);
    leave();
  });

  test('is left in the store for a reader that is far behind, until it has caught up', async () => {
    const { pages, reads } = countReads();
    pages.join(journal());
    await pages.after(journal(), 0, 0);
    reads.length = 0;
    for (let seq = 3; seq < 8; seq += 1) {
      const stored = await store.append(change(run, { journal: flush(seq, 1, null, T0 + seq) }));
      if (!stored.committed) throw new Error(stored.reason);
      run = { ...run, heads: stored.heads };
    }
    // It has reached none of them: the first two were written when it was near, the others wait.
    expect(await readOn(pages, 2)).toEqual(range(3, 5).map((seq) => `id: ${seq}`));
    expect(reads).toEqual(['rasp 4']);
    reads.length = 0;
    await store.append(change(run, { journal: flush(8, 1, null, T0 + 8) }));
    expect(await readOn(pages, 7)).toEqual(['id: 8']);
    expect(reads).toEqual([]);
  });

  test('is all there is, until more is stored or the run ends', async () => {
    const { pages, reads } = countReads();
    pages.join(journal());
    const stored = await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    if (!stored.committed) throw new Error(stored.reason);
    expect(await readOn(pages, 3)).toEqual([]);
    expect(reads).toEqual([]);
    await store.append(
      change({ ...run, heads: stored.heads }, { set: { status: 'canceled' }, journal: flush(4, 1, null, T0 + 20) }),
    );
    expect(await pages.after(journal(), 4, 1)).toEqual({ bytes: null, lastSeq: 4, ended: 'canceled' });
    expect(reads).toEqual(['rasp 4']);
  });

  test('is found by a reader that starts where the last one stopped, even if more was stored in between', async () => {
    const { pages } = countReads();
    const leave = pages.join(journal());
    const stored = await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    if (!stored.committed) throw new Error(stored.reason);
    expect(await readOn(pages, 2)).toEqual(['id: 3']);
    leave();
    await store.append(change({ ...run, heads: stored.heads }, { journal: flush(4, 1, null, T0 + 20) }));
    pages.join(journal());
    expect(await readOn(pages, 3)).toEqual(['id: 4']);
  });

  test('is not promised for a deleted run', async () => {
    const { pages } = countReads();
    pages.join(journal());
    const stored = await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    if (!stored.committed) throw new Error(stored.reason);
    await store.append(change({ ...run, heads: stored.heads }, { set: { status: 'canceled' } }));
    expect(await store.deleteRun(run.run_id)).toBe('deleted');
    await expect(pages.after(journal(), 3, 9)).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });

  test('is looked for again where others write too', async () => {
    const { pages, reads } = countReads({ isComplete: false });
    pages.join(journal());
    await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    expect(await readOn(pages, 3)).toEqual([]);
    expect(reads).toEqual(['rasp 3']);
  });

  test('is read from the store when nobody read the run, or only the other protocol, or not any more', async () => {
    const { pages, reads } = countReads();
    const leave = [pages.join(journal('fcmp')), pages.join(journal())];
    leave[1]?.();
    await store.append(change(run, { journal: flush(3, 1, null, T0 + 10) }));
    expect(await readOn(pages, 2)).toEqual(['id: 3']);
    expect(reads).toEqual(['rasp 2', 'rasp 3']);
  });

  test('equals the result of the store, from any cursor', async () => {
    const { pages } = countReads();
    pages.join(journal());
    await store.append(change(run, { journal: flush(3, MANY, null, T0 + 10) }));
    const { pages: others } = countReads();
    for (const cursor of [0, 1, 2, 3, 500, MANY, MANY + 1, MANY + 2]) {
      const expected = range(cursor + 1, MANY + 2 - cursor).map((seq) => `id: ${seq}`);
      expect(await readOn(pages, cursor)).toEqual(expected);
      expect(await readOn(others, cursor)).toEqual(expected);
    }
  });

  test('a large piece is read from the store once for all of its pages', async () => {
    const { pages, reads } = countReads();
    await store.append(change(run, { journal: flush(3, MANY, null, T0 + 10) }));
    expect(await readOn(pages, 0)).toHaveLength(MANY + 2);
    expect(reads).toHaveLength(2);
  });
});
